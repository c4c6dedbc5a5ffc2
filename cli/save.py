"""``tmconvert save``."""

from __future__ import annotations

from pathlib import Path

import click

from .messages import logging_to_stderr, progress
from .options import json_option, model_argument
from .rendering import write, write_json
from .wording import counted, quantity, size


@click.command("save")
@model_argument
@click.argument("output", metavar="OUT.tm", type=click.Path())
@json_option
def command(model: str, output: str, as_json: bool) -> None:
    """Turn MODEL into the safe form of .tm: no pickle, nothing that runs, weights mapped from the file.

    Every command takes OUT.tm in the place of MODEL. MODEL need not be convertible.
    """
    from .. import api

    with logging_to_stderr(False), progress(f"saving {model}"):
        module = api.save(model, output)
    written = Path(output).stat().st_size
    modules = sum(1 for _ in module.modules())
    if as_json:
        write_json(
            {
                "model": model,
                "path": output,
                "bytes": written,
                "producer": module.producer or None,
                "modules": modules,
                "parameters": module.parameter_count(),
            }
        )
        return
    parameters = quantity(module.parameter_count(), "parameter")
    write(f"{output}  ({counted(modules, 'module')}, {parameters}, {size(written)})")
