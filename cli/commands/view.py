"""``tmconvert view``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json
from tmconvert.conversion.format_numbers import size


@click.command(
    "view",
    cls=GroupedCommand,
    example="tmconvert view model.tflite --source model.tm -o model.html",
    further=("path",),
)
@model_argument
@declared_options("view")
def command(model: str, json: bool, **given: Any) -> None:
    """Draw MODEL, a model or a written file, as one HTML page that works without a network.

    Modules fold and unfold; a search finds names, operators and lines of the source. A written file is drawn
    as it is stored: with --source, selecting an operator shows what was fused into it.
    """
    keywords = keywords_of("view", given)
    output = keywords.pop("path", None) or f"{Path(model).name}.html"
    from tmconvert import api

    with logging_to_stderr(False), progress(f"drawing {model}"):
        page = api.view(model, output, **keywords)
    if json:
        write_json({"model": model, "path": output, "bytes": len(page.text.encode())})
        return
    write(f"{output}  ({size(len(page.text.encode()))})")
