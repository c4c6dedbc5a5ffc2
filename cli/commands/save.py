"""``tmconvert save``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import dynamic_option, json_option, model_argument, tracing_options
from tmconvert.cli.rendering import write, write_json, write_message
from tmconvert.cli.tracing_options import tracing_arguments
from tmconvert.cli.wording import counted, quantity, size


@click.command("save")
@model_argument
@click.argument("output", metavar="OUT.tm", type=click.Path())
@dynamic_option
@tracing_options
@json_option
def command(model: str, output: str, as_json: bool, **tracing: Any) -> None:
    """Turn MODEL into the safe form of .tm: no pickle, nothing that runs, weights mapped from the file.

    Every command takes OUT.tm in the place of MODEL. MODEL need not be convertible.
    """
    save(model, output, as_json, f"saving {model}", **tracing)


def save(model: str, output: str, as_json: bool, what: str, **tracing: Any) -> None:
    """Writes the container, and says what it holds; ``tracing`` are the options of ``tracing.py``."""
    arguments = tracing_arguments(**tracing)
    from tmconvert import api

    with logging_to_stderr(False), progress(what):
        module = api.save(model, output, **arguments)
    written = Path(output).stat().st_size
    modules = sum(1 for _ in module.modules())
    write_message(*module.notes)
    if as_json:
        write_json(
            {
                "model": model,
                "path": output,
                "bytes": written,
                "producer": module.producer or None,
                "modules": modules,
                "parameters": module.parameter_count(),
                "notes": module.notes,
            }
        )
        return
    parameters = quantity(module.parameter_count(), "parameter")
    write(f"{output}  ({counted(modules, 'module')}, {parameters}, {size(written)})")
