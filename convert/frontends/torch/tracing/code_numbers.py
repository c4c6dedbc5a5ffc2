"""Finds sizes at which a module may compute something else, from the numbers in its code.

Python turns a size into text, a hash or a plain integer without a word, and what that is compared with is not
on the tape. But the number it is compared with is in the code that reads the size, or in a function that this
code calls. So these numbers are collected where sizes are read, and the module is run at the sizes at which a
dimension, or the number of elements or bytes of a tensor, is one of them.
"""

from __future__ import annotations

import dis
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any

from tmconvert.frontends.torch.tracing.source_lines import is_bottom, is_users

CALLS = 2  # how far functions are followed that the code names
_COMPARING = frozenset(("isclose", "get", "index", "count", "startswith", "endswith", "match", "eq"))
_LONGEST = 16  # characters of a text that may be a size: longer ones are messages
Shape = tuple[int, ...]


class SizeReads:
    """The sizes that the user's code reads in a run, and the numbers in that code, the nearest first.

    ``shapes`` has the shape of each tensor whose sizes were read, in order, with the bytes of an element.
    """

    def __init__(self) -> None:
        self.shapes: list[tuple[Shape, int]] = []
        self.numbers: dict[int, None] = {}
        self.compares = False  # whether the code compares anything with anything but None
        self._seen: set[CodeType] = set()

    def add(self, shape: Shape, itemsize: int) -> None:
        """Notes that the sizes of a tensor are read by the code that runs now."""
        self.shapes.append((shape, itemsize))
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not is_bottom(frame):
            code = frame.f_code
            if code not in self._seen and is_users(code.co_filename, code.co_name, frame.f_globals):
                self._look(code, _names(frame), CALLS)
            frame = frame.f_back

    def _look(self, code: CodeType, names: Mapping[str, object], calls: int) -> None:
        if code in self._seen:
            return
        self._seen.add(code)
        self.compares = self.compares or _compares(code)
        owner = names.get("self")
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._look(constant, names, calls)
            elif constant is not code.co_consts[0] or not isinstance(constant, str):  # a docstring
                self._keep(constant)
        for name in (*code.co_names, *code.co_freevars):
            for value in (names.get(name), getattr(owner, "__dict__", {}).get(name)):
                self._keep(value)
            for called in (names.get(name), getattr(type(owner), name, None)):
                self._follow(called, owner, calls)

    def _follow(self, called: object, owner: object, calls: int) -> None:
        try:
            function = inspect.unwrap(called) if callable(called) else None
        except Exception:  # an object with any attribute
            return
        if not calls or not isinstance(function, FunctionType):
            return
        code = function.__code__
        if is_users(code.co_filename, code.co_name, function.__globals__):
            names = {**function.__globals__, **inspect.getclosurevars(function).nonlocals, "self": owner}
            self._look(code, names, calls - 1)

    def _keep(self, value: object) -> None:
        for number in _numbers(value):
            self.numbers.setdefault(number)


def _names(frame: FrameType) -> dict[str, Any]:
    """Returns the names that the code of a frame uses and does not assign, and ``self``."""
    outer = {name: frame.f_locals[name] for name in frame.f_code.co_freevars if name in frame.f_locals}
    return {**frame.f_globals, **outer, "self": frame.f_locals.get("self")}


@lru_cache(maxsize=1024)
def _compares(code: CodeType) -> bool:
    if not _COMPARING.isdisjoint(code.co_names):
        return True
    previous = None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in ("COMPARE_OP", "CONTAINS_OP", "BUILD_MAP", "BUILD_CONST_KEY_MAP"):
            return True
        is_none = previous is not None and previous.opname == "LOAD_CONST" and previous.argval is None
        if name == "IS_OP" and not is_none:
            return True
        previous = instruction
    return False


def _numbers(value: object) -> Iterator[int]:
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        if value == value and abs(value) < sys.maxsize and int(value) == value:
            yield int(value)
    elif isinstance(value, str):
        if len(value) <= _LONGEST:
            yield from map(int, re.findall(r"[0-9]+", value))
    elif isinstance(value, (tuple, list, set, frozenset, dict)) and len(value) <= _LONGEST:
        for each in value:
            yield from _numbers(each)


def telling_sizes(size: int, reads: SizeReads, other: int, others: SizeReads) -> list[int]:
    """Returns sizes of a dimension at which something that is read equals a number of the code.

    ``reads`` are those of a run at ``size``, ``others`` those at ``other``: what is read is taken to change
    steadily between and beyond. The numbers include sizes that do not change.

    >>> reads, others = SizeReads(), SizeReads()
    >>> reads.numbers = others.numbers = {28: None}
    >>> reads.compares = True
    >>> reads.shapes, others.shapes = [((3, 4), 4)], [((6, 4), 4)]
    >>> telling_sizes(3, reads, 6, others)
    [28, 4, 7, 1]
    """
    if not reads.compares:
        return []
    lines: dict[tuple[int, Fraction], None] = {(size, Fraction(1)): None}
    numbers = dict(reads.numbers)
    for one, two in zip(reads.shapes, others.shapes, strict=False):
        for first, second in zip(_quantities(*one), _quantities(*two), strict=False):
            if first == second:
                numbers.setdefault(first)
            else:
                lines.setdefault((first, Fraction(second - first, other - size)))
    found = [size + (number - start) / slope for start, slope in lines for number in numbers]
    return list(dict.fromkeys(int(each) for each in found if each.denominator == 1 and each > 0))


def _quantities(shape: Sequence[int], itemsize: int) -> list[int]:
    count = 1
    for extent in shape:
        count *= extent
    return [*shape, count, count * itemsize]
