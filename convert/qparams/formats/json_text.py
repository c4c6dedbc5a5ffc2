"""Strict JSON of parameter files: no unexpected or duplicate keys."""

from __future__ import annotations

import json
import math
from typing import Any

from tmconvert.qparams.formats.format import Unreadable, repeated


def written(document: object) -> str:
    """Prints JSON with indentation of four; floats in the shortest form that reads back the same."""
    return json.dumps(document, indent=4, allow_nan=False) + "\n"


def parsed(text: str) -> Any:
    """Parses the document. Raises Unreadable for invalid JSON and duplicate keys."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(f"it is not valid JSON: {error}") from error


class Fields:
    """An object of a file. Its methods raise Unreadable, which names ``place``."""

    def __init__(self, given: object, place: str) -> None:
        if not isinstance(given, dict):
            raise Unreadable(f"{place} must be an object")
        self.given, self.place = given, place

    def has(self, *names: str) -> bool:
        return all(name in self.given for name in names)

    def get(self, name: str) -> Any:
        if name not in self.given:
            raise Unreadable(f"{self.place} has no {name!r}")
        return self.given[name]

    def inner(self, name: str) -> Fields:
        return Fields(self.get(name), f"{name!r} of {self.place}")

    def text(self, name: str) -> str:
        value = self.get(name)
        if not isinstance(value, str):
            raise Unreadable(f"{name!r} of {self.place} must be a string")
        return value

    def flag(self, name: str) -> bool:
        """Returns a boolean, also from a string, as some files have it."""
        value = self.get(name)
        if isinstance(value, str) and value in ("True", "False"):
            return value == "True"
        if not isinstance(value, bool):
            raise Unreadable(f"{name!r} of {self.place} must be true or false")
        return value

    def integer(self, name: str, low: int = -(2**40), high: int = 2**40) -> int:
        return as_integer(self.get(name), f"{name!r} of {self.place}", low, high)

    def number(self, name: str) -> float:
        return as_number(self.get(name), f"{name!r} of {self.place}")

    def items(self, name: str) -> list[Any]:
        """Returns a list; a single value becomes a list of it."""
        value = self.get(name)
        if isinstance(value, dict):
            raise Unreadable(f"{name!r} of {self.place} must be a list")
        return value if isinstance(value, list) else [value]

    def numbers(self, name: str) -> tuple[float, ...]:
        return tuple(as_number(value, f"{name!r} of {self.place}") for value in self.items(name))

    def integers(self, name: str) -> tuple[int, ...]:
        place = f"{name!r} of {self.place}"
        return tuple(as_integer(value, place, -(2**40), 2**40) for value in self.items(name))


def as_number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unreadable(f"{place} must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Unreadable(f"{place} is not finite")
    return number


def as_integer(value: Any, place: str, low: int, high: int) -> int:
    """Returns an integer, also from a float without fraction such as AIMET's -128.0."""
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_whole or not low <= value <= high:
        raise Unreadable(f"{place} must be an integer from {low} to {high}")
    return int(value)


def scalar_or_list(values: tuple[object, ...]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _once(pairs: list[tuple[str, object]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable(f"{repeated(name for name, _ in pairs)!r} is defined twice")
    return found


def _constant(name: str) -> float:
    raise Unreadable(f"it contains {name}, which is not a number")
