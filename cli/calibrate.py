"""``tmconvert calibrate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .messages import counting, logging_to_stderr
from .options import json_option, model_argument
from .rendering import write, write_json
from .wording import counted, quantity

if TYPE_CHECKING:
    from ..ir import TracedModule


def _rules(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [rule.rpartition("=") for rule in given]
    for pattern, _, kind in pairs:
        if not (pattern and kind):
            raise click.UsageError(f"--rule is PATTERN=int8|int16x8|float, not {pattern or kind!r}")
    return {pattern: kind for pattern, _, kind in pairs}


def _numbers(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in (text or "").split(",") if number.strip())
    except ValueError as error:
        raise click.BadParameter(f"{text!r} are no numbers, as in 0.485,0.456,0.406") from error


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
@click.option(
    "--method",
    type=click.Choice(["minmax", "percentile", "mse", "entropy"]),
    default="mse",
    show_default=True,
    help="How ranges come of what is seen.",
)
@click.option("--per-tensor", is_flag=True, help="One scale for each weight, not one for each channel.")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="PATTERN=KIND",
    help="int8, int16x8 or float for modules or tensors: 'head.*=int16x8'. May be repeated; the last that "
    "fits counts.",
)
@click.option(
    "--no-bias-correction",
    is_flag=True,
    help="Leave the biases as they are: the float model stays exactly MODEL.",
)
@click.option("--mean", callback=_numbers, metavar="M,M,M", help="Of images: (pixel / 255 - mean) / std.")
@click.option("--std", callback=_numbers, metavar="S,S,S", help="Of images.")
@click.option(
    "--layout",
    type=click.Choice(["nchw", "nhwc"]),
    default="nchw",
    show_default=True,
    help="Order of the input that images are for.",
)
@json_option
def command(
    model: str,
    data: str,
    output: str,
    method: str,
    per_tensor: bool,
    rules: tuple[str, ...],
    no_bias_correction: bool,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    layout: str,
    as_json: bool,
) -> None:
    """Measure the scales of the float MODEL on data, for conversions with --quantized."""
    from .. import api

    chosen = _rules(rules)
    with logging_to_stderr(False), counting(f"calibrating {model}") as progress:
        made = api.calibrate(
            model,
            data,
            method=method,
            per_channel=not per_tensor,
            rules=chosen,
            bias_correction=not no_bias_correction,
            mean=mean,
            std=std,
            layout=layout,
            progress=progress,
        )
        made.save(output)
    tensors, weights = _quantized(made)
    if as_json:
        about = {"model": model, "path": output, "method": method, "tensors": tensors, "weights": weights}
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
