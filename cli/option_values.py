"""Parses the values of options for the Python functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tmconvert.targets.options import DEFAULT_SIGNATURE


def input_qparams(
    types: Sequence[str], scales: Sequence[str], zero_points: Sequence[str]
) -> dict[str, tuple[str, float, int]]:
    """Parses ``[NAME=]VALUE`` of three options by name; those without are ``*``. Raises UsageError."""
    of_type, of_scale, of_zero = (
        {name or "*": value for name, _, value in (text.rpartition("=") for text in texts)}
        for texts in (types, scales, zero_points)
    )
    if set(of_type) != set(of_scale) or not set(of_zero) <= set(of_type):
        raise click.UsageError("--input-type and --input-scale require each other, for the same inputs")
    try:
        return {
            name: (dtype, float(of_scale[name]), int(of_zero.get(name, "0")))
            for name, dtype in of_type.items()
        }
    except ValueError as error:
        raise click.UsageError(f"--input-scale and --input-zero-point must be numbers: {error}") from None


def separated(texts: Sequence[str]) -> tuple[str, ...]:
    """Splits the values of an option that may be repeated at commas.

    >>> separated(("onnx,tflite", "caffe"))
    ('onnx', 'tflite', 'caffe')
    """
    return tuple(each.strip() for text in texts for each in text.split(",") if each.strip())


def names(text: str, option: str) -> list[str]:
    """Parses a comma-separated list of names. Raises UsageError."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise click.UsageError(f"{option} {text}: write names separated by commas")
    return found


def numbers(text: str, option: str) -> list[float]:
    """Parses a comma-separated list of numbers. Raises BadParameter."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        hint = f"'{option}'"
        message = f"{text!r} must be numbers, such as 0.485,0.456,0.406"
        raise click.BadParameter(message, param_hint=hint) from None


def rules(texts: Sequence[str]) -> dict[str, str]:
    """Parses ``PATTERN=TYPE`` to types by pattern. Raises BadParameter."""
    found: dict[str, str] = {}
    for text in texts:
        pattern, _, kind = text.rpartition("=")
        if not (pattern and kind):
            message = f"write PATTERN=TYPE, such as head.*=int8, not {pattern or kind!r}"
            raise click.BadParameter(message, param_hint="'--rule'")
        found[pattern] = kind
    return found


def renamed(texts: Sequence[str]) -> dict[str, str]:
    """Parses ``OLD=NEW`` to new names by old ones. Raises UsageError."""
    return dict(_pair(text, "--rename", "OLD=NEW") for text in texts)


def counts(text: str) -> list[int]:
    """Parses ``32,128`` to numbers. Raises UsageError."""
    parts = [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() for each in parts):
        raise click.UsageError(f"--prefill-lengths {text}: write N,..., as in 32,128")
    return [int(each) for each in parts]


def signatures(texts: str | Sequence[str]) -> str | dict[str, str]:
    """Parses the name of a signature to read, or ``NAME=MODEL`` to models by name. Raises UsageError."""
    if isinstance(texts, str):
        return texts
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    return _distinct([_pair(text, "--signature", "NAME=MODEL") for text in texts])


def with_signatures(model: str, further: Mapping[str, str]) -> dict[str, str]:
    """Returns the models of a file by signature: MODEL, or NAME=MODEL, and ``further`` ones.

    Raises UsageError.
    """
    first = _pair(model, "MODEL", "NAME=MODEL") if "=" in model else (DEFAULT_SIGNATURE, model)
    return _distinct([first, *further.items()])


def _distinct(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"two signatures have the name {twice}: write NAME=MODEL with different names")
    return dict(pairs)


def metadata(texts: Sequence[str]) -> dict[str, Any]:
    """Parses ``KEY=VALUE`` and paths of JSON files to values by key. Raises UsageError."""
    found: dict[str, Any] = {}
    for text in texts:
        if "=" in text:
            key, _, value = text.partition("=")
            found[key.strip()] = value
            continue
        from tmconvert.conversion.annotations import read_text

        try:
            values = json.loads(read_text(text, f"the file of metadata {text}"))
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"--metadata {text}: the file is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise click.UsageError(f'--metadata {text}: write a JSON object, such as {{"author": "me"}}')
        found |= values
    return found


def input_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Parses ``NAME=N,N,...`` to shapes by input. Raises UsageError."""
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
        raise click.UsageError(f"--input-shape {text}: {sizes} must be a list of integers") from None


def layouts(texts: Sequence[str]) -> str | dict[str, str] | None:
    """Parses ``--io-layout``, with or without names. Raises UsageError."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, order = text.rpartition("=")
        if order not in ("nhwc", "source"):
            raise click.UsageError(f"--io-layout {text}: write nhwc, source, NAME=nhwc or NAME=source")
        if found.setdefault(name or "*", order) != order:
            raise click.UsageError(f"--io-layout {text}: {name or 'all others'} has two layouts")
    return found["*"] if list(found) == ["*"] else found or None


def fixed_sizes(texts: Sequence[str], flag: str = "--fix") -> dict[str, int]:
    """Parses the values of ``--fix`` or ``--size`` to numbers of sizes by name. Raises UsageError."""
    found: dict[str, int] = {}
    for text in texts:
        name, number = _pair(text, flag, "NAME=N, as in batch=1")
        if not (number.isascii() and number.isdigit()) or len(number) > 9 or not int(number):
            raise click.UsageError(f"{flag} {text}: {number:.40} must be a positive integer")
        if found.setdefault(name, int(number)) != int(number):
            raise click.UsageError(f"{flag} {text}: {name} has two numbers")
    return found


def dynamic_shapes(texts: Sequence[str]) -> dict[str, dict[int, str]]:
    """Parses ``--dynamic`` to names of dimensions by input and axis. Raises UsageError."""
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
