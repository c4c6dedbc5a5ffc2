"""Finds sizes at which a module may compute something else, from the numbers in its code.

Python can convert a size to text, a hash or a plain integer, whose comparisons are not recorded on the tape.
The number that it is compared with is in the code that reads the size, or in a function that this code calls.
So these numbers are collected where sizes are read, and the module is run at sizes at which a dimension, or
the number of elements or bytes of a tensor, equals one of them. Code without such a number, as ``TABLE[n]``
or ``chr(n)``, is tested at all small sizes.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tmconvert.frontends.torch.tracing.recording.source_lines import NOT_USERS, is_bottom, is_users
from tmconvert.frontends.torch.tracing.sizes.integers import TRACED

CALLS = 3  # how far functions are followed that the code names
MOST_CALLS = 8000  # in a run of a module with loops
SMALL = 32  # sizes up to this one are tried where no number tells
_LONGEST = 40  # characters of a text that may be a size, or elements of a container: longer ones are messages
_LONGEST_TABLE = 1024  # elements of a list or text that a size may be an index of
_CONTAINERS: tuple[type[Any], ...] = (tuple, list, set, frozenset, dict)
_PAIRED = 6  # numbers whose sums, differences and products are tried
Shape = tuple[int, ...]


class SizeReads:
    """The sizes that the user's code reads in a run, and ``code``, the code that reads them.

    ``shapes`` has the shape of each tensor whose sizes were read, in order, with the bytes of an element.
    """

    def __init__(self, code: ReadingCode | None = None) -> None:
        self.shapes: list[tuple[Shape, int]] = []
        self.code = code or ReadingCode()

    def add(self, shape: Shape, itemsize: int) -> None:
        """Records that the code that is running reads the sizes of a tensor."""
        self.shapes.append((shape, itemsize))
        self.code.look(sys._getframe(1))


class ReadingCode:
    """The numbers in the code that reads sizes, those closest to the reading line first.

    All runs of a module share it, so that each function is looked at once.
    """

    def __init__(self) -> None:
        self.numbers: dict[int, None] = {}
        self.decides = False  # whether the code may do something else because of a plain number
        self.tells_types = False  # whether it may tell a traced size from an int
        self.growths: set[str] = set()  # functions such as log2, by which large sizes become small numbers
        self._seen: set[CodeType] = set()

    def look(self, frame: FrameType | None) -> None:
        """Collects the numbers in the code that runs in this frame and in those that called it."""
        while frame is not None and not is_bottom(frame):
            code = frame.f_code
            if code not in self._seen:
                if is_users(code.co_filename, code.co_name, frame.f_globals):
                    self._look(code, _names(frame), CALLS)
                self._seen.add(code)
            frame = frame.f_back

    def _look(self, code: CodeType, names: Mapping[str, object], calls: int) -> None:
        if code in self._seen:
            return
        self._seen.add(code)
        from tmconvert.frontends.torch.tracing.data.code_decisions import (
            compared_constants,
            decides,
            growths,
            tells_types,
        )

        self.decides = self.decides or decides(code)
        self.tells_types = self.tells_types or tells_types(code)
        self.growths |= growths(code)
        owner = names.get("self")
        for constant in compared_constants(code):
            self._keep(constant)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._look(constant, names, calls)
            elif constant is not code.co_consts[0] or not isinstance(constant, str):  # a docstring
                self._keep(constant)
        for value in _values(code, names):
            self._keep(value)
        for name in (*code.co_names, *code.co_freevars):
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
        if code not in self._seen and is_users(code.co_filename, code.co_name, function.__globals__):
            outer = inspect.getclosurevars(function).nonlocals if code.co_freevars else {}
            self._look(code, ChainMap({**outer, "self": owner}, function.__globals__), calls - 1)

    def _keep(self, value: object) -> None:
        for number in _numbers(value):
            self.numbers.setdefault(number)


def _names(frame: FrameType) -> Mapping[str, Any]:
    """Returns the names that the code of a frame uses and does not assign, its arguments, and ``self``."""
    code, found = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    outer = {name: found[name] for name in (*code.co_freevars, *code.co_varnames[:count]) if name in found}
    return ChainMap({**outer, "self": found.get("self")}, frame.f_globals)


def _values(code: CodeType, names: Mapping[str, object]) -> Iterator[object]:
    """Yields what the code may mean by its names: variables, and attributes of objects among these."""
    used = (*code.co_names, *code.co_freevars, *code.co_varnames[: code.co_argcount])
    values = [names[name] for name in used if name in names]
    yield from values
    for owner in (names.get("self"), *values):
        if isinstance(owner, ModuleType) and owner.__name__.partition(".")[0] in NOT_USERS:
            continue
        for attributes in (_attributes(owner), _attributes(type(owner))):
            for name in code.co_names:
                if name in attributes:
                    yield attributes[name]
                    yield from map(_attributes(attributes[name]).get, code.co_names)


def _attributes(owner: object) -> Mapping[str, object]:
    found = getattr(owner, "__dict__", None)
    return found if isinstance(found, Mapping) else {}


def _numbers(value: object) -> Iterator[int]:
    if isinstance(value, (bool, *TRACED)):
        return
    if isinstance(value, (int, float)):
        if value == value and abs(value) < sys.maxsize and int(value) == value:
            yield int(value)
    elif isinstance(value, str):
        if len(value) <= _LONGEST:
            yield from map(int, re.findall(r"[0-9]+", value))
    else:
        base = next((each for each in type(value).__mro__ if each in _CONTAINERS), None)
        if base is not None and base.__len__(value) <= _LONGEST:  # a user's own __len__ may raise
            for each in base.__iter__(value):
                yield from _numbers(each)
    if type(value) in (str, bytes, tuple, list):
        yield from _places(value)


def _places(table: Any) -> Iterator[int]:
    """Yields the indices at which the elements of a list of numbers, or of a text, change."""
    if SMALL < len(table) <= _LONGEST_TABLE and all(isinstance(each, (int, float, str)) for each in table):
        yield from (index for index in range(1, len(table)) if table[index] != table[index - 1])


def telling_sizes(size: int, reads: SizeReads, other: int, others: SizeReads) -> list[int]:
    """Returns sizes of a dimension to test, the most likely to differ first.

    At the first ones a size that the code reads equals a number in the code; then follow all small sizes, and
    those at which it equals a number that Python can compute from numbers in the code. ``reads`` are the
    sizes read in a run at ``size``, ``others`` those at ``other``; they are assumed to be linear in the
    dimension. The numbers include sizes that do not change.

    >>> reads = SizeReads()
    >>> reads.code.numbers, reads.code.decides = {28: None}, True
    >>> others = SizeReads(reads.code)
    >>> reads.shapes, others.shapes = [((3, 4), 4)], [((6, 4), 4)]
    >>> telling_sizes(3, reads, 6, others)[:6]
    [28, 7, 4, 1, 2, 3]
    """
    if not reads.code.decides or not reads.shapes:
        return []
    lines: dict[tuple[int, Fraction], None] = {(size, Fraction(1)): None}
    numbers = dict(reads.code.numbers)
    for one, two in zip(reads.shapes, others.shapes, strict=False):
        for first, second in zip(_quantities(*one), _quantities(*two), strict=False):
            if first == second:
                numbers.setdefault(first)
            else:
                lines.setdefault((first, Fraction(second - first, other - size)))

    def sizes_of(values: Iterator[int]) -> Iterator[int]:
        for number in values:
            for start, slope in lines:
                found = size + (number - start) / slope
                if found.denominator == 1 and found > 0:
                    yield int(found)

    grown = sizes_of(_grown(list(reads.code.numbers), reads.code.growths))
    computed = sizes_of(_computed(list(reads.code.numbers)))
    return list(dict.fromkeys([*sizes_of(iter(numbers)), *grown, *range(1, SMALL + 1), *computed]))


def sizes_of_loops(
    sizes: list[int], largest: int, reads: SizeReads, run: tuple[int, int], other: tuple[int, int]
) -> tuple[list[int], int]:
    """Returns the sizes to test of a module with loops, and the largest one whose run is short.

    At the first ones the counter is beyond most numbers in the code, also with a round for each two elements.
    ``run`` and ``other`` are the size and the calls of two runs: twice the rounds of nested loops are four
    times the calls.
    """
    number, calls = run
    is_nested = other[1] * number > 1.5 * calls * other[0]
    most = MOST_CALLS * number ** (1 + is_nested) // calls
    largest = min(largest, math.isqrt(most) if is_nested else most)
    beyond = [
        max((size for each in reads.code.numbers if (size := factor * each + 2) <= largest), default=1)
        for factor in (2, 1)
    ]
    return [*beyond, *sizes] if sizes else [], largest


def _grown(numbers: Sequence[int], growths: set[str]) -> Iterator[int]:
    """Yields what becomes one of the numbers by a growth."""
    from tmconvert.frontends.torch.tracing.data.code_decisions import GROWTHS

    for number in numbers:
        yield from (GROWTHS[name](number) for name in sorted(growths) if 0 < number <= SMALL)


def _computed(numbers: Sequence[int]) -> Iterator[int]:
    """Yields simple results of two of the numbers."""
    few = [number for number in numbers if number not in (0, 1)][:_PAIRED]
    for one, two in permutations(few, 2):
        yield from (one + two, one - two, one * two)


def _quantities(shape: Sequence[int], itemsize: int) -> list[int]:
    count = 1
    for extent in shape:
        count *= extent
    return [*shape, count, count * itemsize]
