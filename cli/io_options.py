"""The options about a model's edges, from the command line's words to those of the API."""

from __future__ import annotations

from typing import Any

import click


def boundary_arguments(
    input_shapes: tuple[str, ...] = (),
    inputs: str | None = None,
    outputs: str | None = None,
    rename: tuple[str, ...] = (),
    input_type: tuple[str, ...] = (),
    input_scale: tuple[str, ...] = (),
    input_zero_point: tuple[str, ...] = (),
    accept_range: bool = False,
) -> dict[str, Any]:
    """Keyword arguments of the API; those of options that were not given are left out. Raises UsageError."""
    arguments = {
        "input_shapes": dict(_shape(text) for text in input_shapes),
        "inputs": names(inputs, "--inputs"),
        "outputs": names(outputs, "--outputs"),
        "rename": dict(_pair(text, "--rename", "OLD=NEW") for text in rename),
        "input_grids": _grids(input_type, input_scale, input_zero_point),
        "accept_range": accept_range,
    }
    return {name: value for name, value in arguments.items() if value}


def _grids(
    types: tuple[str, ...], scales: tuple[str, ...], zero_points: tuple[str, ...]
) -> dict[str, tuple[str, float, int]]:
    """Of ``[NAME=]VALUE`` in three options, by name; ``*`` for those without one. Raises UsageError."""
    of_type, of_scale, of_zero = (
        {name or "*": value for name, _, value in (text.rpartition("=") for text in texts)}
        for texts in (types, scales, zero_points)
    )
    if set(of_type) != set(of_scale) or not set(of_zero) <= set(of_type):
        raise click.UsageError("--input-type and --input-scale go together, for the same inputs")
    try:
        return {
            name: (dtype, float(of_scale[name]), int(of_zero.get(name, "0")))
            for name, dtype in of_type.items()
        }
    except ValueError as error:
        raise click.UsageError(f"--input-scale and --input-zero-point are numbers: {error}") from None


def names(text: str | None, option: str) -> list[str] | None:
    """The names of a list with commas."""
    if text is None:
        return None
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise click.UsageError(f"{option} {text}: give names with commas between them")
    return found


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not left.strip() or not right.strip():
        raise click.UsageError(f"{option} {text}: write {form}")
    return left.strip(), right.strip()


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, sizes = _pair(text, "--input-shape", "NAME=N,N,..., as in x=1,3,224,224")
    try:
        return name, tuple(int(size) for size in sizes.strip("[]()").split(","))
    except ValueError:
        raise click.UsageError(f"--input-shape {text}: {sizes} is no list of numbers") from None


def layouts(texts: tuple[str, ...]) -> str | dict[str, str] | None:
    """The orders of ``--io-layout``, by name where there are names. Raises UsageError."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, order = text.rpartition("=")
        if order not in ("nhwc", "source"):
            raise click.UsageError(f"--io-layout {text}: write nhwc, source, NAME=nhwc or NAME=source")
        if found.setdefault(name or "*", order) != order:
            raise click.UsageError(f"--io-layout {text}: {name or 'all others'} has two orders")
    return found["*"] if list(found) == ["*"] else found or None


def dynamic_shapes(texts: tuple[str, ...]) -> dict[str, dict[int, str]]:
    """The names of sizes that ``--dynamic`` leaves open, by input and axis. Raises UsageError."""
    found: dict[str, dict[int, str]] = {}
    for text in texts:
        place, size = _pair(text, "--dynamic", "NAME:AXIS=SIZE, as in x:0=batch")
        name, colon, axis = place.rpartition(":")
        if not colon or not name or not axis.removeprefix("-").isdigit():
            raise click.UsageError(f"--dynamic {text}: write NAME:AXIS=SIZE, as in x:0=batch")
        if int(axis) in found.setdefault(name, {}):
            raise click.UsageError(f"--dynamic {text}: axis {axis} of {name} has two names")
        found[name][int(axis)] = size
    return found
