"""``tmconvert stream``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json


@click.command(
    "stream", cls=GroupedCommand, example="tmconvert stream net.tm -o step.onnx --time x:2 --chunk 4"
)
@model_argument
@declared_options("stream")
def command(model: str, output: str, json: bool, **given: Any) -> None:
    """Make a step file of MODEL, an offline model over time: it takes chunks and states.

    Layers keep what they need of the past in states, which are inputs and outputs; what they need of the
    future becomes a delay. The steps are compared with the offline model over whole streams.
    """
    from tmconvert import api

    keywords = keywords_of("stream", given)
    if str(keywords.get("chunk")).isdigit():
        keywords["chunk"] = int(keywords["chunk"])
    with logging_to_stderr(False), progress(f"making steps of {model}"):
        report = api.stream(model, output, **keywords)
    if json:
        write_json(report.to_json())
    else:
        write(*report.lines())
