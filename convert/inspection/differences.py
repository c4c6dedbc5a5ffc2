"""Differences between tensors, and how large they may be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NHWC_TO_NCHW, NCHW_TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


class Difference(NamedTuple):
    """``largest`` is max|a - b| / max|a|, ``noise`` the same of root mean squares, of finite elements.

    Both are infinite where the shapes differ, or the positions of NaN and infinities.
    """

    largest: float
    noise: float

    @property
    def decibels(self) -> float:
        """Returns the ratio of signal to noise in dB; infinite for equal tensors."""
        return float("inf") if self.noise == 0 else float(-20 * np.log10(self.noise))


class Limits(NamedTuple):
    """The largest differences that a kind of file has for sound reasons.

    ``local`` and ``local_noise`` are those of one layer for equal operands, ``accumulated`` and ``output``
    those of all layers up to a tensor.
    """

    local: float
    local_noise: float
    accumulated: float
    output: float


# Sums of float32 in another order differ by about 1e-6; float16 has 11 bits; integers of 8 bits differ by a
# few steps of 255 for the rounding of weights, operands and results, and 16 of them are 0.126.
LIMITS = {
    "float32": Limits(1e-3, 1e-3, 1e-3, 1e-4),
    "float16": Limits(2e-2, 1e-2, 5e-2, 2e-2),
    "integers": Limits(0.126, 0.3, 0.5, 0.5),
}


def difference(expected: np.ndarray, actual: np.ndarray) -> Difference:
    """Compares a tensor with what is expected."""
    if expected.shape != actual.shape:
        return Difference(float("inf"), float("inf"))
    if not expected.size:
        return Difference(0.0, 0.0)
    one, other = np.asarray(expected, np.float64), np.asarray(actual, np.float64)
    is_finite = np.isfinite(one)
    if not np.array_equal(is_finite, np.isfinite(other)):
        return Difference(float("inf"), float("inf"))
    if not is_finite.all():
        one, other = one[is_finite], other[is_finite]
        if not one.size:
            return Difference(0.0, 0.0)
    off = other - one
    largest, size = float(np.max(np.abs(off))), float(np.max(np.abs(one)))
    noise, power = float(np.sqrt(np.mean(off * off))), float(np.sqrt(np.mean(one * one)))
    if size == 0:
        return Difference(largest, noise)
    return Difference(largest / size, noise / power if power else noise)


def aligned(expected: np.ndarray, actual: np.ndarray) -> tuple[np.ndarray, tuple[int, ...] | None]:
    """Returns ``actual`` in the layout of ``expected``, and the permutation that leads there.

    Where several layouts are possible it is the one that differs least.
    """
    candidates: list[tuple[np.ndarray, tuple[int, ...] | None]] = []
    if actual.shape == expected.shape:
        candidates.append((actual, None))
    for order in _orders(actual.ndim):
        moved = actual.transpose(order)
        if moved.shape == expected.shape:
            candidates.append((moved, order))
    if not candidates and _squeezed(actual.shape) == _squeezed(expected.shape):
        candidates.append((actual.reshape(expected.shape), None))
    if not candidates:
        return actual, None
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda each: difference(expected, each[0]).noise)


def _orders(rank: int) -> list[tuple[int, ...]]:
    """Returns the permutations between channels first and last."""
    if rank < 3:
        return []
    to_first = (0, rank - 1, *range(1, rank - 1))
    to_last = (0, *range(2, rank), 1)
    return [to_first, to_last]


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
