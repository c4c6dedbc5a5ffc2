"""``tmconvert calibrate``."""

from __future__ import annotations

import click

from .messages import logging_to_stderr, progress
from .options import model_argument
from .rendering import write


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
    default="minmax",
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
@click.option("--mean", callback=_numbers, metavar="M,M,M", help="Of images: (pixel / 255 - mean) / std.")
@click.option("--std", callback=_numbers, metavar="S,S,S", help="Of images.")
@click.option(
    "--layout",
    type=click.Choice(["nchw", "nhwc"]),
    default="nchw",
    show_default=True,
    help="Order of the input that images are for.",
)
def command(
    model: str,
    data: str,
    output: str,
    method: str,
    per_tensor: bool,
    rules: tuple[str, ...],
    mean: tuple[float, ...],
    std: tuple[float, ...],
    layout: str,
) -> None:
    """Measure the scales of the float MODEL on data, for conversions with --quantized."""
    from .. import api

    chosen = _rules(rules)
    with logging_to_stderr(False), progress(f"calibrating {model}"):
        made = api.calibrate(
            model,
            data,
            method=method,
            per_channel=not per_tensor,
            rules=chosen,
            mean=mean,
            std=std,
            layout=layout,
        )
        made.save(output)
    write(output)
