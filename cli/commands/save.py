"""``tmconvert save``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json, write_message
from tmconvert.conversion.format_numbers import counted, quantity, size


@click.command("save", cls=GroupedCommand, example="tmconvert save model.pkl model.tm")
@model_argument
@click.argument("output", metavar="OUT.tm", type=click.Path())
@declared_options("save")
def command(model: str, output: str, json: bool, **given: Any) -> None:
    """Convert MODEL to the safe .tm format: no pickle, no code, weights mapped from the file.

    Every command accepts OUT.tm as MODEL. MODEL need not be convertible.
    """
    save(model, output, json, f"saving {model}", keywords_of("save", given))


def save(model: str, output: str, as_json: bool, what: str, keywords: dict[str, Any]) -> None:
    """Writes the container, and prints a summary; ``keywords`` are those of ``tmconvert.api.save``."""
    from tmconvert import api

    with logging_to_stderr(False), progress(what):
        module = api.save(model, output, **keywords)
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
