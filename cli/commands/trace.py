"""``tmconvert trace``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.commands.save import save
from tmconvert.cli.options import dynamic_option, json_option, tracing_options


@click.command("trace")
@click.argument("model", metavar="PACKAGE.MODULE:FACTORY")
@click.option("-o", "--output", metavar="MODEL.tm", type=click.Path(), required=True, help="Where to write.")
@dynamic_option
@tracing_options
@json_option
def command(model: str, output: str, as_json: bool, **tracing: Any) -> None:
    """Run a PyTorch model once, and write what it did to MODEL.tm, which needs no PyTorch any more.

    FACTORY is a function without arguments that returns the module, or (module, inputs); a class of
    modules; or a module. It is imported as Python would in the current folder, and random weights are the
    same each time. A .pt2 file of torch.export.save may stand in its place. The inputs, and what PyTorch
    computed for them, go into the file: conversions of it are verified against that.
    """
    save(model, output, as_json, f"tracing {model}", **tracing)
