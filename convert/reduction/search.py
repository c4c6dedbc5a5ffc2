"""Finds a smallest set of nodes that fails: one that a message names, else the shortest beginning, the
shortest end of it, and then single nodes.

The last stage is delta debugging (Zeller and Hildebrandt, 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Fails = Callable[[Sequence[int]], bool]
MOST_GUESSES = 6


def smallest_failing(count: int, fails: Fails, guesses: Sequence[int] = ()) -> list[int]:
    """Returns numbers of nodes, in order, for which ``fails`` holds and none can be left out.

    All nodes together are known to fail; ``guesses`` are tried one by one before.

    >>> smallest_failing(100, lambda kept: 40 in kept and 42 in kept)
    [40, 42]
    """
    for each in guesses[:MOST_GUESSES]:
        if fails([each]):
            return [each]
    end = _first(1, count, lambda length: fails(range(length)))
    kept = list(range(end))
    start = end - _first(1, end, lambda length: fails(range(end - length, end)))
    kept = kept[start:] if start and fails(kept[start:]) else kept
    size = max(len(kept) // 2, 1)
    while True:
        kept = without_chunks(kept, size, fails)
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


def without_chunks(kept: list[int], size: int, fails: Fails) -> list[int]:
    """Returns what is left when as many chunks of ``size`` as possible are left out."""
    start = 0
    while start < len(kept) and len(kept) > 1:
        rest = kept[:start] + kept[start + size :]
        if rest and fails(rest):
            kept = rest
        else:
            start += size
    return kept
