"""Sizes of 0 or 1 that choose a branch: at which sizes of symbols, and which relations hold there.

A condition is such a size with its value. Relations are evaluated at many sizes: all small ones, and those
around the numbers in the formulas.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from tmconvert.ir.symbolic.dims import LEAST, Dim, Symbol, symbols_of
from tmconvert.ir.symbolic.journal import BRANCH, Branch
from tmconvert.ir.symbolic.signs import thresholds

T = TypeVar("T")
Conditions = tuple[tuple[Dim, int], ...]
SMALL = (0, 256, 64, 20)  # the largest size, in units, of all those looked at, by the number of symbols
LARGE = (511, 512, 1000, 1023, 4096, 10007)
AROUND = (0, 130, 4, 2)  # sizes above a number in a formula


def where(choice: Dim | None, value: int, function: Callable[[], T]) -> T:
    """Calls a function that computes what is needed only at sizes at which ``choice`` has this value.

    Relations that hold there are no guards, and the example has such sizes meanwhile.
    """
    if choice is None:
        return function()
    conditions = (*_CONDITIONS.get(), (choice, value))
    branch = Branch(partial(holds_where, conditions=conditions), example_where(conditions))
    tokens = _CONDITIONS.set(conditions), BRANCH.set(branch)
    try:
        return function()
    finally:
        _CONDITIONS.reset(tokens[0])
        BRANCH.reset(tokens[1])


_CONDITIONS: ContextVar[Conditions] = ContextVar("conditions", default=())


def example_where(conditions: Conditions) -> dict[str, int]:
    """Returns sizes in units near the example at which the conditions hold; empty if none are found."""
    symbols = symbols_of([choice for choice, _ in conditions])
    sizes = _sizes(symbols, conditions)
    if sizes is None:
        return {}
    holds = _hold(conditions, sizes)
    distance = np.zeros(holds.shape)
    for name, column in sizes.items():
        distance += abs(column - symbols[name].example) + 1e9 * (column < LEAST)
    if not holds.any():
        return {}
    nearest = int(np.argmin(np.where(holds, distance, np.inf)))
    return {name: int(column[nearest]) for name, column in sizes.items()}


@lru_cache(maxsize=4096)
def holds_where(difference: Dim, signs: frozenset[int], conditions: Conditions) -> bool:
    """Whether the sign of ``difference`` is one of these at all sizes at which the conditions hold."""
    symbols = symbols_of([difference, *(choice for choice, _ in conditions)])
    sizes = _sizes(symbols, [*conditions, (difference, 0)])
    if sizes is None:
        return False
    with np.errstate(all="ignore"):
        found = np.isin(np.sign(_at(difference, sizes)), list(signs))
    holds = _hold(conditions, sizes)
    return bool(holds.any() and (found | ~holds).all())


def _hold(conditions: Conditions, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
    shape = next(iter(sizes.values())).shape
    found = np.ones(shape, bool)
    for choice, value in conditions:
        found &= _at(choice, sizes) == value
    return found


def _at(size: Dim, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(size.at(lambda symbol: sizes[symbol.name]))


def _sizes(
    symbols: Mapping[str, Symbol], formulas: Sequence[tuple[Dim, int]]
) -> dict[str, np.ndarray] | None:
    """Returns arrays of sizes in units, by name; None for many symbols, or those of data."""
    count = len(symbols)
    if not 0 < count < len(SMALL) or any(symbol.from_data for symbol in symbols.values()):
        return None
    numbers = [thresholds([formula]) for formula, _ in formulas]
    columns = []
    for name, symbol in symbols.items():
        known = {*range(1, SMALL[count]), *LARGE}
        for number in (each[name] for each in numbers if name in each):
            known |= {*range(number - AROUND[count], number + AROUND[count]), 2 * number, 2 * number + 1}
        least = 1 if symbol.lowest == LEAST else symbol.lowest
        most = max(known) if symbol.most is None else symbol.most
        columns.append([each for each in sorted(known) if least <= each <= most])
    table = np.array(list(itertools.product(*columns)), np.int64).reshape(-1, count).T
    return dict(zip(symbols, table, strict=True))
