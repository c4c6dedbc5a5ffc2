"""``tmconvert calibrate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json, write_message
from tmconvert.conversion.format_numbers import counted, quantity

if TYPE_CHECKING:
    from tmconvert.ir import TracedModule


@click.command(
    "calibrate",
    cls=GroupedCommand,
    example="tmconvert calibrate model.tm --data images/ --output calibrated.tm",
)
@model_argument
@declared_options("calibrate")
def command(model: str, **given: Any) -> None:
    """Measure the quantization parameters of the float MODEL on data, for conversions with --quantized."""
    keywords = keywords_of("calibrate", given)
    data, output = keywords.pop("data"), keywords["output"]
    from tmconvert import api

    with logging_to_stderr(False), progress(f"calibrating {model}"):
        made = api.calibrate(model, data, **keywords)
    write_message(*made.notes)
    tensors, weights = _quantized(made)
    if given["json"]:
        about = {
            "model": model,
            "path": output,
            "method": keywords.get("method", "mse"),
            "tensors": tensors,
            "weights": weights,
        }
        write_json({**about, "parameters": made.parameter_count()})
        return
    parameters = quantity(made.parameter_count(), "parameter")
    write(
        f"{output}  (scales for {counted(tensors, 'tensor')} and {counted(weights, 'weight')}, {parameters})"
    )


def _quantized(made: TracedModule) -> tuple[int, int]:
    """Counts the quantized tensors and weights."""
    weights = sum(getattr(array, "qparams", None) is not None for array in made.tensors.values())
    assert made.graph is not None
    nodes = [*made.graph.inputs, *(node for expr in made.graph for node in expr.outputs)]
    return sum(getattr(node, "qparams", None) is not None for node in nodes) - weights, weights
