"""The values of single options, from the text of a command line to what the Python functions take."""

from __future__ import annotations

from collections.abc import Sequence

import click


def input_grids(
    types: Sequence[str], scales: Sequence[str], zero_points: Sequence[str]
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


def names(text: str, option: str) -> list[str]:
    """The names of a list with commas. Raises UsageError."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise click.UsageError(f"{option} {text}: give names with commas between them")
    return found


def numbers(text: str, option: str) -> list[float]:
    """The numbers of a list with commas. Raises BadParameter."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        hint = f"'{option}'"
        message = f"{text!r} are no numbers, as in 0.485,0.456,0.406"
        raise click.BadParameter(message, param_hint=hint) from None


def rules(texts: Sequence[str]) -> dict[str, str]:
    """Types by pattern, of ``PATTERN=TYPE``. Raises BadParameter."""
    found: dict[str, str] = {}
    for text in texts:
        pattern, _, kind = text.rpartition("=")
        if not (pattern and kind):
            message = f"write PATTERN=int8, int16x8 or float, not {pattern or kind!r}"
            raise click.BadParameter(message, param_hint="'--rule'")
        found[pattern] = kind
    return found


def renamed(texts: Sequence[str]) -> dict[str, str]:
    """New names by old ones, of ``OLD=NEW``. Raises UsageError."""
    return dict(_pair(text, "--rename", "OLD=NEW") for text in texts)


def input_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes by input, of ``NAME=N,N,...``. Raises UsageError."""
    return dict(_shape(text) for text in texts)


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


def layouts(texts: Sequence[str]) -> str | dict[str, str] | None:
    """The orders of ``--io-layout``, by name where there are names. Raises UsageError."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, order = text.rpartition("=")
        if order not in ("nhwc", "source"):
            raise click.UsageError(f"--io-layout {text}: write nhwc, source, NAME=nhwc or NAME=source")
        if found.setdefault(name or "*", order) != order:
            raise click.UsageError(f"--io-layout {text}: {name or 'all others'} has two orders")
    return found["*"] if list(found) == ["*"] else found or None


def dynamic_shapes(texts: Sequence[str]) -> dict[str, dict[int, str]]:
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
