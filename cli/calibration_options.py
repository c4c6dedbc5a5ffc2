"""The options of a calibration, of ``tmconvert calibrate`` and of the conversions that begin with one."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.options import Command, with_options


def _rules(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str] | None:
    pairs = [rule.rpartition("=") for rule in given]
    for pattern, _, kind in pairs:
        if not (pattern and kind):
            raise click.BadParameter(f"write PATTERN=int8, int16x8 or float, not {pattern or kind!r}")
    return {pattern: kind for pattern, _, kind in pairs} or None


def _numbers(context: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} are no numbers, as in 0.485,0.456,0.406") from None


_DATA_OPTIONS = (
    click.option(
        "--calibration",
        type=click.Path(),
        metavar="DATA",
        help="Measure the scales of a float model first, as `tmconvert calibrate` does, on FILE.npz, or a "
        "folder of .npy, .npz or images.",
    ),
)
# what is not given is None: the defaults are those of the Python API
_SETTINGS = (
    click.option(
        "--method",
        type=click.Choice(["minmax", "percentile", "mse", "entropy"]),
        help="How ranges come of what is seen.  [default: mse]",
    ),
    click.option("--per-tensor", is_flag=True, help="One scale for each weight, not one for each channel."),
    click.option(
        "--rule",
        "rules",
        multiple=True,
        callback=_rules,
        metavar="PATTERN=KIND",
        help="int8, int16x8 or float for modules or tensors: 'head.*=int16x8'. May be repeated; the last "
        "that fits counts.",
    ),
    click.option(
        "--no-bias-correction",
        is_flag=True,
        help="Leave the biases as they are: the float model stays the function of MODEL.",
    ),
    click.option(
        "--no-equalization",
        is_flag=True,
        help="Leave the channels between layers as they are, rather than scaled to use one grid alike.",
    ),
    click.option("--mean", callback=_numbers, metavar="M,M,M", help="Of images: (pixel / 255 - mean) / std."),
    click.option("--std", callback=_numbers, metavar="S,S,S", help="Of images."),
    click.option(
        "--layout",
        type=click.Choice(["nchw", "nhwc"]),
        help="Order of the input that images are for.  [default: nchw]",
    ),
)
_NAMES = ("method", "rules", "mean", "std", "layout")
_SWITCHED_OFF = {
    "per_tensor": "per_channel",
    "no_bias_correction": "bias_correction",
    "no_equalization": "equalization",
}


def settings_options(command: Command) -> Command:
    """Adds what can be chosen of a calibration; ``chosen`` takes it."""
    return with_options(_SETTINGS, command)


def calibration_options(command: Command) -> Command:
    """Adds the data, too, for a conversion that calibrates its model first."""
    return with_options((*_DATA_OPTIONS, *_SETTINGS), command)


def chosen(options: dict[str, Any]) -> dict[str, Any]:
    """Takes the settings out of the options of a command; those given, as keywords of ``calibrate``."""
    taken = {name: options.pop(name) for name in _NAMES}
    found = {name: value for name, value in taken.items() if value is not None}
    return found | {name: False for flag, name in _SWITCHED_OFF.items() if options.pop(flag)}
