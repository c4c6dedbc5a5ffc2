"""``tmconvert calibrate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.calibration_options import chosen, settings_options
from tmconvert.cli.io_options import boundary_arguments
from tmconvert.cli.messages import counting, logging_to_stderr
from tmconvert.cli.options import (
    dynamic_option,
    input_shape_option,
    json_option,
    model_argument,
    tracing_options,
)
from tmconvert.cli.rendering import write, write_json, write_message
from tmconvert.cli.tracing_options import tracing_arguments
from tmconvert.cli.wording import counted, quantity

if TYPE_CHECKING:
    from tmconvert.ir import TracedModule


@click.command("calibrate")
@model_argument
@click.option(
    "-d",
    "--data",
    required=True,
    type=click.Path(),
    help="Inputs as the model will see them: FILE.npz, or a folder of .npy, .npz or images.",
)
@click.option(
    "-o", "--output", required=True, metavar="OUT.tm", type=click.Path(), help="The model with its scales."
)
@settings_options
@input_shape_option
@dynamic_option
@tracing_options
@json_option
def command(
    model: str,
    data: str,
    output: str,
    input_shapes: tuple[str, ...],
    as_json: bool,
    **others: Any,
) -> None:
    """Measure the scales of the float MODEL on data, for conversions with --quantized."""
    options = chosen(others)
    edges = {**boundary_arguments(input_shapes), **tracing_arguments(**others)}
    from tmconvert import api

    with logging_to_stderr(False), counting(f"calibrating {model}", f"settling {model}") as progress:
        made = api.calibrate(model, data, output=output, progress=progress, **options, **edges)
    write_message(*made.notes)
    tensors, weights = _quantized(made)
    if as_json:
        about = {
            "model": model,
            "path": output,
            "method": options.get("method", "mse"),
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
    """How many tensors, and how many weights, have a grid."""
    weights = sum(getattr(array, "qparams", None) is not None for array in made.tensors.values())
    assert made.graph is not None
    nodes = [*made.graph.inputs, *(node for expr in made.graph.exprs() for node in expr.outputs)]
    return sum(getattr(node, "qparams", None) is not None for node in nodes) - weights, weights
