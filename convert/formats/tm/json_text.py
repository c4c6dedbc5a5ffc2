"""Parses the JSON subset of containers: unique keys, complete surrogate pairs, numbers within bounds."""

from __future__ import annotations

import json
import re
from typing import Any

from tmconvert.formats.tm.faults import bad_json, over_limit

MAX_DIGITS = 30
_HALF_CHARACTER = re.compile(rb"\\u[dD][89abAB]")


def parse(data: bytes, what: str) -> Any:
    """Parses ``data``. Raises LoadError TM1013, or TM1006 if it is nested too deeply."""
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_no_number,
        )
        if _HALF_CHARACTER.search(data):
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError as error:
        raise over_limit(f"{what} nests its values too deeply") from error
    except ValueError as error:  # UnicodeError and JSONDecodeError are of this kind
        raise bad_json(f"{what} is not valid JSON for a container: {error}") from error
    return document


def _object(pairs: list[tuple[str, object]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object has a duplicate key")
    return result


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")
