"""``tmconvert evaluate``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json


@click.command(
    "evaluate",
    cls=GroupedCommand,
    example="tmconvert evaluate model.onnx int8.tflite --data images/ --std 1 --min-agreement 0.98",
)
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@declared_options("evaluate")
@click.pass_context
def command(ctx: click.Context, /, first: str, second: str, json: bool, **given: Any) -> None:
    """Measure how far two models or written files differ on the samples of a folder.

    A and B are source models, ONNX or TFLite files or prototxts, in float or in integers. For each output:
    signal-to-noise ratio, largest difference, cosine similarity, and for scores of classes how often the best
    one is the same; then the worst samples. The exit status is 1 when --min-sqnr or --min-agreement is not
    reached.
    """
    keywords = keywords_of("evaluate", given)
    data = keywords.pop("data")
    from tmconvert import api

    with logging_to_stderr(False), progress(f"evaluating {second}"):
        found = api.evaluate(first, second, data, **keywords)
    if json:
        write_json(found.to_json())
    else:
        write(*found.lines())
    ctx.exit(0 if found.ok else 1)
