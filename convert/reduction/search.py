"""Finds a smallest set of nodes that fails: the shortest beginning, then the shortest end, then single nodes.

The last stage is delta debugging (Zeller and Hildebrandt, 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Fails = Callable[[Sequence[int]], bool]


def smallest_failing(count: int, fails: Fails) -> list[int]:
    """Returns numbers of nodes, in order, for which ``fails`` holds and none can be left out.

    All nodes together are known to fail.

    >>> smallest_failing(100, lambda kept: 40 in kept and 42 in kept)
    [40, 42]
    """
    end = _first(1, count, lambda length: fails(range(length)))
    kept = list(range(end))
    start = end - _first(1, end, lambda length: fails(range(end - length, end)))
    kept = kept[start:] if start and fails(kept[start:]) else kept
    size = max(len(kept) // 2, 1)
    while True:
        kept = _without_chunks(kept, size, fails)
        if size == 1:
            return kept
        size = max(size // 2, 1)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Returns the smallest number for which ``holds``, if it holds for all larger ones; ``high`` is known."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _without_chunks(kept: list[int], size: int, fails: Fails) -> list[int]:
    start = 0
    while start < len(kept) and len(kept) > 1:
        rest = kept[:start] + kept[start + size :]
        if rest and fails(rest):
            kept = rest
        else:
            start += size
    return kept
