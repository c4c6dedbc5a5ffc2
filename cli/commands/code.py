"""``tmconvert code``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json, write_message
from tmconvert.conversion.format_numbers import quantity


@click.command("code", cls=GroupedCommand, example="tmconvert code model.tm -o net --class-name Net")
@model_argument
@declared_options("code")
def command(model: str, output: str, json: bool, **given: Any) -> None:
    """Write MODEL as a Python package: a readable torch.nn.Module and its weights, which need PyTorch only.

    The package runs, trains, and can be traced again; see docs/surgery/train-and-code.md.
    """
    from tmconvert import api

    with logging_to_stderr(False), progress(f"writing the code of {model}"):
        module, class_name = api.to_folder(model, output, **keywords_of("code", given))
    write_message(*module.notes)
    parameters = module.parameter_count()
    if json:
        write_json({"model": model, "path": output, "class": class_name, "parameters": parameters})
        return
    write(f"{output}  (class {class_name}, {quantity(parameters, 'parameter')})")
