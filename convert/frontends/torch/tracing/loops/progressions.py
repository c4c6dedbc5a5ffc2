"""Numbers that follow an integer: the number of a round, or a size.

Python computes ``k * 0.1``, ``1 / (k + 1)``, ``math.sin(k)`` or ``k % 4`` as plain numbers.
``progression_of`` finds the function from the numbers at some integers; runs at other sizes check it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

NUMBERS = (int, float)
LARGEST_PERIOD = 16
TOLERANCE = 1e-9
Points = Sequence[tuple[int, Any]]  # integers, and the number at each


@dataclass(frozen=True)
class Progression:
    """The number ``start + step * i`` for an integer i, to which the functions of ``then`` are applied.

    A function has a name and operands; ``table`` takes the element at the remainder by its length.

    >>> Progression(1.0, 1.0, (("pow", -1.0),)).at(3)
    0.25
    """

    start: float
    step: float
    then: tuple[tuple[Any, ...], ...] = ()

    def at(self, i: int) -> Any:
        """Returns the number for an integer."""
        number: Any = self.start + self.step * i
        for name, *operands in self.then:
            number = _COMPUTED[name](number, *operands)
        return number

    def steps(self) -> Iterator[tuple[Any, ...]]:
        """Yields the functions that lead from the integer to the number."""
        if self.step != 1:
            yield "mul", self.step
        yield "add", self.start
        yield from self.then


_COMPUTED: dict[str, Callable[..., Any]] = {
    "mul": lambda number, factor: number * factor,
    "add": lambda number, addend: number + addend,
    "pow": math.pow,
    "floor_divide": lambda number, divisor: number // divisor,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "square": lambda number: number * number,
    "table": lambda number, table: table[number % len(table)],
}


def progression_of(points: Points) -> Progression | None:
    """Returns the function that has these numbers, all of one type; None where none is found."""
    if len(points) < 2:
        return None
    is_whole = type(points[0][1]) is int
    for fit in (_linear, *((_quotient, _squares, _periodic) if is_whole else (*_INVERTED, _sine, _periodic))):
        try:
            found = fit(points)
            if found is not None and _fits(found, points):
                return found
        except (ArithmeticError, ValueError):  # a logarithm of 0, or a number that is too large
            continue
    return None


def _fits(found: Progression, points: Points) -> bool:
    size = max(abs(number) for _, number in points)
    return all(
        math.isclose(
            found.at(i), number, rel_tol=TOLERANCE, abs_tol=TOLERANCE * size if found.then else 1e-11
        )
        for i, number in points
    )


def _round(number: float) -> float:
    return float(f"{number:.12g}")  # the same for any number of points


def _linear(points: Points) -> Progression | None:
    (first, start), (last, end) = points[0], points[-1]
    rise, run = end - start, last - first
    if type(start) is int:
        return None if rise % run else Progression(start - rise // run * first, rise // run)
    step = _round(rise / run)
    return Progression(_round(start - step * first) if first else start, step)


def _by_inverse(inverse: Callable[[float], float], *then: Any) -> Callable[[Points], Progression | None]:
    """Returns the fit of a function, given its inverse."""

    def fit(points: Points) -> Progression | None:
        inner = _linear([(i, inverse(number)) for i, number in points]) if len(points) > 2 else None
        return inner and Progression(_round(inner.start), inner.step, (then,))

    return fit


_INVERTED = (
    _by_inverse(lambda number: 1 / number, "pow", -1.0),
    _by_inverse(math.log, "exp"),
    _by_inverse(lambda number: number * number, "pow", 0.5),
    _by_inverse(math.sqrt, "square"),
    _by_inverse(lambda number: 1 / (number * number), "pow", -0.5),
    _by_inverse(math.exp, "log"),
)


def _is_consecutive(points: Points) -> bool:
    return [i for i, _ in points] == [*range(len(points))]


def _sine(points: Points) -> Progression | None:
    """Returns a sine: the sum of two numbers that are two apart is a multiple of that between."""
    if len(points) < 4 or not _is_consecutive(points):
        return None
    first, second, third = (number for _, number in points[:3])
    cosine = (first + third) / (2 * second)
    step = math.acos(cosine)
    cosine_part = (second - first * cosine) / math.sin(step)
    height = _round(math.hypot(first, cosine_part))
    return Progression(_round(math.atan2(first, cosine_part)), _round(step), (("sin",), ("mul", height)))


def _quotient(points: Points) -> Progression | None:
    """Returns a counter that is divided and rounded down."""
    if len(points) < 4 or not _is_consecutive(points):
        return None
    if any(after - before not in (0, 1) for (_, before), (_, after) in pairwise(points)):
        return None
    start = points[0][1]
    for divisor in range(2, LARGEST_PERIOD + 1):
        for offset in range(divisor):
            found = Progression(offset + start * divisor, 1, (("floor_divide", divisor),))
            if _fits(found, points):
                return found
    return None


def _squares(points: Points) -> Progression | None:
    """Returns a square of integers, such as ``t * t + 1``."""
    if len(points) < 4 or not _is_consecutive(points):
        return None
    zero, one, two = (number for _, number in points[:3])
    second = two - 2 * one + zero
    if second % 2:
        return None
    factor, root = second // 2, (one - zero - second // 2)
    if not factor or root % (2 * factor):
        return None
    shift = root // (2 * factor)
    then = (("square",), ("mul", factor), ("add", zero - factor * shift * shift))
    return Progression(shift, 1, then)


def _periodic(points: Points) -> Progression | None:
    """Returns numbers that are taken in turns."""
    if not _is_consecutive(points):
        return None
    numbers = [number for _, number in points]
    for period in range(2, min(LARGEST_PERIOD, len(numbers) - 2) + 1):
        if numbers[period:] == numbers[:-period]:
            return Progression(0, 1, (("table", tuple(numbers[:period])),))
    return None
