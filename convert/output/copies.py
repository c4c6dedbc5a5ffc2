"""Finds equal constants that are not in the same memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from operator import itemgetter

import numpy as np

from tmconvert.ir.lazy_constants import Array, Lazy, memory_of, viewed

_PIECE = 1 << 20  # bytes that are compared at a time
_COMPARED_FIRST = 1 << 10  # bytes by which arrays are found that may be equal


class Copies:
    """Keys of arrays that are equal for arrays of the same bytes, shape and type.

    Arrays are compared piece by piece, and only those with the same first bytes. The arrays themselves are
    kept, so that no other one gets their memory.
    """

    def __init__(self) -> None:
        # by memory: the array, and the memory of the first one with the same bytes
        self._keys: dict[Hashable, tuple[Array, Hashable]] = {}
        self._known: dict[Hashable, list[Array]] = {}

    def key(self, data: Array) -> Hashable:
        memory = memory_of(data)
        if memory not in self._keys:
            first = next(_pieces(data), b"")[:_COMPARED_FIRST]
            alike = self._known.setdefault((data.shape, data.dtype, first), [])
            equal = next((each for each in alike if _are_equal(each, data)), None)
            self._keys[memory] = data, memory if equal is None else memory_of(equal)
            if equal is None:
                alike.append(data)
        return self._keys[memory][1]


def _are_equal(first: Array, second: Array) -> bool:
    return all(a == b for a, b in zip(_pieces(first), _pieces(second), strict=True))


def _pieces(data: Array) -> Iterator[bytes]:
    """Yields the bytes of an array, a few rows at a time."""
    if not data.ndim:
        yield _bytes(data)
        return
    rows = max(1, data.shape[0] * _PIECE // max(data.nbytes, 1))
    for start in range(0, data.shape[0], rows):
        yield _bytes(viewed(data, itemgetter(slice(start, start + rows))))


def _bytes(data: Array) -> bytes:
    if isinstance(data, Lazy):
        made = np.empty(data.shape, data.dtype)  # a product keeps what it computes itself
        data.compute(made)
        return made.tobytes()
    return data.tobytes()
