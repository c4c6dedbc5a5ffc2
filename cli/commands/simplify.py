"""``tmconvert simplify``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.conversion import run_conversion
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument


@click.command(
    "simplify",
    cls=GroupedCommand,
    is_long=True,
    example="""\
tmconvert simplify model.onnx simple.onnx
tmconvert simplify model.onnx simple.onnx --input-shape x=1,3,64,64""",
)
@model_argument
@click.argument("out", metavar="OUT.onnx", type=click.Path())
@declared_options("simplify")
def command(model: str, out: str, **given: Any) -> None:
    """Simplify the ONNX file MODEL, and write it to OUT.onnx, with the same opset, inputs and outputs.

    Nodes that cannot be converted stay as they are. The result is compared with MODEL in ONNX Runtime. If
    MODEL cannot be simplified, OUT.onnx is a copy, and a message states why.
    """
    run_conversion("onnx", model, [out], given, function="simplify")
