"""``tmconvert trace``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.commands.save import save
from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.options import GroupedCommand, declared_options


@click.command(
    "trace",
    cls=GroupedCommand,
    example="tmconvert trace torchvision.models:resnet18 -o model.tm --input 'float32[1,3,224,224]'",
)
@click.argument("model", metavar="PACKAGE.MODULE:FACTORY")
@declared_options("trace")
def command(model: str, output: str, json: bool, **given: Any) -> None:
    """Run a PyTorch model once, and write its graph to MODEL.tm, which does not need PyTorch.

    FACTORY is a function without arguments that returns the module, or (module, inputs); a class of modules;
    or a module. It is imported as Python would in the current folder, and random weights are the same each
    time. It may also be a .pt2 file of torch.export.save. The file stores the inputs and the outputs that
    PyTorch computed for them; conversions of it are verified against these outputs.
    """
    save(model, output, json, f"tracing {model}", keywords_of("trace", given))
