"""What is certain of the sign of a size, whatever the values of its symbols (all at least ``LEAST``)."""

from __future__ import annotations

import math

from .dims import LEAST, Dim, Floor, Size, Symbol, exact_quotient

MAX_PERIOD = 1 << 12  # values tried to prove a comparison of floors


def signs(value: Size) -> set[int]:
    """The signs (-1, 0, 1) that ``value`` may have; all three where nothing is certain."""
    if isinstance(value, int):
        return {(value > 0) - (value < 0)}
    shared = [atom for atom in value.terms[0][0] if isinstance(atom, Symbol)]
    if shared and all(shared[0] in monomial for monomial, _ in value.terms):
        return signs(exact_quotient(value, shared[0]))
    found = _signs_if_growing(value)
    if found is None:
        opposite = _signs_if_growing(-value)
        found = None if opposite is None else {-sign for sign in opposite}
    return found or _signs_by_period(value) or {-1, 0, 1}


def _signs_if_growing(value: Dim) -> set[int] | None:
    """Of an expression that grows with each symbol: its smallest value tells."""
    if not _grows(value):
        return None
    least = value.at(lambda symbol: LEAST)
    return {1} if least > 0 else {0, 1} if least == 0 else None


def _grows(value: Size) -> bool:
    if isinstance(value, int):
        return value >= 0
    return all(
        factor > 0 and all(isinstance(atom, Symbol) or _floor_grows(atom) for atom in monomial)
        for monomial, factor in value.terms
        if monomial
    )


def _floor_grows(atom: Floor) -> bool:
    return isinstance(atom.denominator, int) and _grows(atom.numerator) and signs(atom.numerator) <= {0, 1}


def _signs_by_period(value: Dim) -> set[int] | None:
    """Of one symbol, linear but for floors of numbers: it repeats itself, with a constant step a period."""
    period = _period(value)
    if len(value.symbols) != 1 or period is None or period > MAX_PERIOD:
        return None
    values = [value.at(lambda symbol, size=size: size) for size in range(LEAST, LEAST + period + 1)]
    step = values.pop() - values[0]
    found = {(each > 0) - (each < 0) for each in values}
    steady = step == 0 or (step > 0 and found == {1}) or (step < 0 and found == {-1})
    if step > 0 and min(values) == 0:
        return {0, 1}
    if step < 0 and max(values) == 0:
        return {-1, 0}
    return found if steady else None


def zeros_by_unit(value: Dim) -> int | None:
    """The unit, of the size itself, whose multiples make a value of one symbol zero and nothing else does.

    None where the zeros are others, or the example is none of them.
    """
    (symbol,) = value.symbols.values()
    period = _period(value)
    if period is None or period > MAX_PERIOD:
        return None
    values = [value.at(lambda _, size=size: size) for size in range(period, 2 * period + 1)]
    zeros = [i for i, each in enumerate(values) if each == 0]
    if len(zeros) < 2 or zeros != list(range(0, period + 1, zeros[1])) or symbol.example % zeros[1]:
        return None
    return zeros[1] * symbol.unit


def _period(value: Size) -> int | None:
    """A number of steps after which the floors repeat; None where ``value`` is not linear in its atoms."""
    period = 1
    for monomial, _ in value.terms if isinstance(value, Dim) else ():
        if len(monomial) > 1:
            return None
        for atom in monomial:
            if isinstance(atom, Floor):
                inner = _period(atom.numerator)
                if inner is None or not isinstance(atom.denominator, int):
                    return None
                period = math.lcm(period, inner * atom.denominator)
    return period
