"""Transpositions with fewer axes, and as a sequence within a target's rank limit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

Order = tuple[int, ...]


def merged(shape: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], Order]:
    """Returns the same transposition with as few axes as possible: (shape, order).

    Axes of one element go, and axes that stay neighbours become one.

    >>> merged((2, 1, 3, 5), [3, 0, 1, 2])
    ((6, 5), (1, 0))
    """
    runs: list[list[int]] = []
    kept = [axis for axis in order if shape[axis] != 1]
    position = {axis: i for i, axis in enumerate(sorted(kept))}
    for axis in kept:
        if runs and position[runs[-1][-1]] + 1 == position[axis]:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    by_source = sorted(runs)
    extents = tuple(math.prod(shape[axis] for axis in run) for run in by_source)
    return extents, tuple(by_source.index(run) for run in runs)


def in_steps(shape: Sequence[int], order: Sequence[int], most: int) -> Iterator[tuple[Order, Order]]:
    """Splits a transposition into a sequence of transpositions of at most ``most`` (five or more) axes each.

    A step gathers as many of the first axes of the result as it can at the front, or of the last ones at
    the back, whichever leaves the fewest axes to move.

    >>> list(in_steps((2, 3, 5, 7, 11, 13), (5, 3, 1, 4, 2, 0), 5))
    [((30, 7, 11, 13), (3, 1, 0, 2)), ((91, 2, 3, 5, 11), (0, 2, 4, 3, 1))]
    """
    extents, places = merged(shape, order)
    while len(places) > most:
        extents, places, step = min(
            (_after(extents, places, gathered) for gathered in _gathered(places)),
            key=lambda left: (len(left[2][1]) > most, len(left[1])),
        )
        yield step
    yield extents, places


def _gathered(places: Order) -> Iterator[Order]:
    for count in range(1, len(places)):
        yield *places[:count], *sorted(places[count:])
        yield *sorted(places[:-count]), *places[-count:]


def _after(extents: Order, places: Order, gathered: Order) -> tuple[Order, Order, tuple[Order, Order]]:
    """Returns the remaining transposition after the axes were ``gathered``, and that step."""
    left = merged([extents[axis] for axis in gathered], [gathered.index(axis) for axis in places])
    return *left, merged(extents, gathered)
