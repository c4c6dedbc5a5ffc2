"""``tmconvert compare``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.keywords import inputs_of, keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json, write_table


@click.command("compare", cls=GroupedCommand, example="tmconvert compare model.tm int8.tflite")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@declared_options("compare")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    first: str,
    second: str,
    inputs: tuple[str, ...],
    json: bool,
    all_layers: bool,
    **given: Any,
) -> None:
    """Compare two models or written files: outputs first, then layer by layer.

    A and B are source models, ONNX or TFLite files or prototxts, in float or in integers. Tensors of the same
    name are compared. A layer goes wrong where its local error is large: the operation of one model is run on
    the operands that the other one has itself. The exit status is 1 when outputs differ or a layer goes
    wrong.
    """
    keywords = keywords_of("compare", {**given, "inputs": ()})
    from tmconvert import api

    with logging_to_stderr(False), progress(f"comparing {first} and {second}"):
        found = api.compare(first, second, inputs_of(inputs), **keywords)
    if json:
        write_json(found.to_json())
    else:
        write(*found.lines())
        if all_layers:
            write("")
            write_table(("layer", "local", "accumulated", ""), [_row(each) for each in found.layers])
    ctx.exit(0 if found.ok else 1)


def _row(layer: Any) -> list[str]:
    local = "" if layer.local is None else f"{layer.local.largest:.1e}"
    return [layer.name, local, f"{layer.accumulated.largest:.1e}", "wrong" if layer.is_wrong else ""]
