"""Explains, in words of the user's code, what a call takes that does not follow an open size."""

from __future__ import annotations

import linecache
import re
from typing import Any

import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import leaves

# what makes a plain number, a text or an array of a size
_FUNCTIONS = re.compile(
    r"(?<![\w.])(?:int|float|complex|str|len|sum|prod|range|divmod|enumerate|list|(?:math|np|numpy)\.[\w.]+)(?=\()"
    r"|(?<=\.)(?:bit_length|get|index|count|item|tolist|numpy)(?=\()"
)
_PRODUCT = re.compile(r"(?<![\w.])\d+(?:\.\d*(?:e[-+]?\d+)?|e-?\d+) ?[*/+-] ?[a-zA-Z_]")
_LONGEST = 100  # characters of a line that are shown


def cause(one: Record | Scope, two: Record | Scope) -> str:
    """Returns what the call takes or returns in a run, and what at another size; empty if unknown."""
    if not isinstance(one, Record) or not isinstance(two, Record) or one.name != two.name:
        return ""
    found = _differing(one, two)
    if found:
        return f": {found}{_code(one.source)}"
    counts = [sum(1 for _ in each.results()) for each in (one, two)]
    return f": it returns {counts[0]} tensors here, and {counts[1]} there" if counts[0] != counts[1] else ""


def _differing(one: Record, two: Record) -> str:
    first, second = (list(leaves((each.args, each.kwargs))) for each in (one, two))
    if len(first) != len(second):
        return "its lists of arguments have other lengths there"
    for value, other in zip(first, second, strict=True):
        if _is_plain(value) and _is_plain(other) and value != other:
            return f"it takes the plain number {_text(value)} here, and {_text(other)} there"
        made, again = (each.captured if isinstance(each, Value) else None for each in (value, other))
        if made is not None and again is not None and not _is_equal(made, again):
            shapes = f"{list(made.shape)} here, and {list(again.shape)} there"
            what = f"of shape {shapes}" if made.shape != again.shape else "with other elements there"
            return f"it takes an array that Python or NumPy made, {what}"
    return ""


def _is_plain(value: Any) -> bool:
    return type(value) in (int, float)


def _text(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.6g}"


def _is_equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one is two or (one.dtype == two.dtype and one.shape == two.shape and torch.equal(one, two))


def _code(source: Source | None) -> str:
    """Returns the line of a call, with the functions in it that make plain numbers of sizes."""
    line = linecache.getline(source.file, source.line).strip() if source and source.line else ""
    if not line:
        return ""
    if _PRODUCT.search(line):
        return (
            f", in `{line}`: Python multiplies a float by a size, which leaves no trace; write the size first"
        )
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
    names = list(dict.fromkeys(found.group() for found in _FUNCTIONS.finditer(line)))
    made = " or ".join(f"{name}()" for name in names) or "a loop, a list, a table or another line"
    return f", in `{shown}`: {made} may have made it of the size"
