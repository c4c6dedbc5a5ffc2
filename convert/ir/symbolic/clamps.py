"""Minimum and maximum of symbolic sizes, as exact expressions."""

from __future__ import annotations

import math

from tmconvert.ir.symbolic.dims import LEAST, Dim, Positive, Size, of, same_size
from tmconvert.ir.symbolic.signs import signs


def positive(size: Size) -> Size:
    """Returns max(size, 0), in the same form for equal sizes.

    Relations that hold only from a size of 2 on are not used: a slice of a batch of 1 is clamped, too.
    """
    possible = signs(size)
    if not isinstance(size, Dim):
        return max(size, 0)
    at_one = _at_one(size)
    if possible <= {0, 1} and at_one is not None and at_one >= 0:
        return size
    if possible <= {-1, 0} and at_one is not None and at_one <= 0:
        return 0
    shared = math.gcd(*(factor for _, factor in size.terms))
    if shared > 1:
        multiple: int | Dim = positive(size // shared) * shared
        return multiple
    leading = next(factor for monomial, factor in size.terms if monomial)
    if leading < 0:
        difference: int | Dim = positive(-size) + size
        return difference
    return Dim((((Positive(size),), 1),))


def _at_one(size: Dim) -> int | None:
    """Returns a size where the symbols are 1, or as small as they can be; None if it divides by 0 there."""
    try:
        found: int = size.at(lambda symbol: min(symbol.least, 1) if symbol.lowest == LEAST else symbol.lowest)
    except ZeroDivisionError:
        return None
    return found


def may_be_empty(size: Size) -> bool:
    """Whether a symbolic size may be 0 without an error, as that of a slice or a data-dependent one."""
    if not isinstance(size, Dim) or 0 not in signs(size):
        return False
    is_clamped = any(isinstance(atom, Positive) for monomial, _ in size.terms for atom in monomial)
    return is_clamped or any(symbol.from_data for symbol in size.symbols.values())


def minimum(first: Size, second: Size) -> Size:
    """Returns the symbolic minimum of two sizes."""
    if isinstance(first, Dim) or isinstance(second, Dim):
        return first - positive(first - second)
    return min(first, second)


def maximum(first: Size, second: Size) -> Size:
    """Returns the symbolic maximum of two sizes."""
    return -minimum(-first, -second)


def unclamped(size: Size, extent: Size) -> Size:
    """Simplifies a slice bound for targets that clamp it to the axis: ``b`` for min(extent, b).

    max(extent - count, 0) is -count, which counts from the end.
    """
    found = as_minimum(size) if isinstance(size, Dim) else None
    if found is not None and same_size(found[0], extent):
        return found[1]
    if isinstance(size, Dim) and len(size.terms) == 1:
        monomial, factor = size.terms[0]
        if factor == 1 and len(monomial) == 1 and isinstance(monomial[0], Positive):
            count = extent - monomial[0].size
            return -count if isinstance(count, int) and count > 0 else size
    return size


def as_minimum(size: Dim) -> tuple[Size, Size] | None:
    """Returns (a, b) if the size is min(a, b), else None."""
    clamps = [
        monomial[0]
        for monomial, factor in size.terms
        if len(monomial) == 1 and isinstance(monomial[0], Positive) and factor == -1
    ]
    if len(clamps) != 1:
        return None
    first = size + of(clamps[0])
    return first, first - clamps[0].size
