"""Scales and zero points of weights in blocks of four or two bits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from tmconvert.ir.lazy_constants import Array, computed
from tmconvert.lowering.rounded_constants import pieces

ScaleRule = Literal["max", "mse", "asymmetric"]
_TINY = np.float32(np.finfo(np.float32).tiny)
_TRIES = 14  # the scales that a search tries, from that of the largest element to 0.6 of it
# of both ends of the range: where searches with zero points start
_ENDS = tuple(product((1.0, 0.93, 0.86, 0.79, 0.72), repeat=2))


class Steps(NamedTuple):
    """Parameters of integers from ``low`` to ``high``, whose axis of elements has length 1.

    ``zero_point`` is None for 0.
    """

    scale: np.ndarray
    zero_point: np.ndarray | None
    low: int
    high: int


class _Search(NamedTuple):
    rule: ScaleRule
    dtype: np.dtype
    bits: int
    is_positive: bool
    is_narrow: bool

    @property
    def least(self) -> int:
        return -self.most - (not self.is_narrow)

    @property
    def most(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def levels(self) -> int:
        return (1 << self.bits) - 1


def block_scales(
    blocks: Array,
    axis: int,
    rule: ScaleRule,
    dtype: np.dtype,
    *,
    bits: int = 4,
    is_positive: bool = False,
    is_narrow: bool = False,
) -> Steps:
    """Returns the parameters with which ``blocks`` are rounded to ``bits``, each of them along ``axis``.

    ``rule`` "max" takes the largest magnitude by 7 (of four bits), "mse" the scale with the least sum of
    squared errors among those that a search tries, and "asymmetric" such a scale with a zero point from 0 to
    15. A scale of "mse" is negative where -8 is for the largest number, unless it must be ``is_positive``;
    with ``is_narrow`` the range begins at -7. Scales are float32 with values of ``dtype``. Blocks are read a
    few at a time.
    """
    search = _Search(rule, dtype, bits, is_positive, is_narrow)
    found = [_parameters(np.moveaxis(computed(piece), axis, -1), search) for piece in pieces(blocks)]
    scale = np.moveaxis(np.concatenate([scale for scale, _ in found]), -1, axis)
    if rule != "asymmetric":
        return Steps(scale, None, -search.most if rule == "max" else search.least, search.most)
    zero_point = np.concatenate([zero for _, zero in found if zero is not None])
    return Steps(scale, np.moveaxis(zero_point, -1, axis), 0, search.levels)


def _parameters(blocks: np.ndarray, search: _Search) -> tuple[np.ndarray, np.ndarray | None]:
    rule, dtype = search.rule, search.dtype
    if rule == "max":
        return _usable(np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(search.most), dtype), None
    blocks = np.ascontiguousarray(blocks)
    scales, zeros = None, np.float32(0)
    low, high = (0, search.levels) if rule == "asymmetric" else (search.least, search.most)
    candidates = _ranges(blocks, search) if rule == "asymmetric" else _largest(blocks, search)
    for start, zero in candidates:
        steps = _steps(blocks, _usable(start, dtype), zero, low, high)
        squares = np.square(steps).sum(axis=-1, keepdims=True)
        sums = (blocks * steps).sum(axis=-1, keepdims=True)
        scale = _usable(np.divide(sums, squares, out=start.copy(), where=squares > 0), dtype)
        steps = _steps(blocks, scale, zero, low, high)
        steps *= scale
        steps -= blocks
        error = np.square(steps, out=steps).sum(axis=-1, keepdims=True)
        if scales is None:
            scales, zeros, least = scale, np.broadcast_to(zero, scale.shape).copy(), error
            continue
        is_better = error < least
        scales, least = np.where(is_better, scale, scales), np.where(is_better, error, least)
        zeros = np.where(is_better, zero, zeros)
    assert scales is not None
    return scales, zeros.astype(np.uint8) if rule == "asymmetric" else None


def _largest(blocks: np.ndarray, search: _Search) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scales with which the element of largest magnitude is -8, or beyond it; 7 where they are positive."""
    most = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1)[..., None], -1)
    if search.is_positive:
        most = -np.abs(most)
    for shrink in np.linspace(-search.least / search.most, 0.6, _TRIES).tolist():
        yield most * np.float32(shrink / search.least), np.float32(0)


def _ranges(blocks: np.ndarray, search: _Search) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scales and zero points for the range of each block, and for smaller ones."""
    levels = search.levels
    yield np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(search.most), np.float32(-search.least)
    low = np.minimum(blocks.min(axis=-1, keepdims=True), 0)
    high = np.maximum(blocks.max(axis=-1, keepdims=True), 0)
    for of_low, of_high in _ENDS:
        scale = (high * np.float32(of_high) - low * np.float32(of_low)) / np.float32(levels)
        zero = np.rint(np.divide(-low * np.float32(of_low), scale, out=np.zeros_like(scale), where=scale > 0))
        yield scale, np.clip(zero, 0, levels)


def _steps(blocks: np.ndarray, scale: np.ndarray, zero: np.ndarray, low: int, high: int) -> np.ndarray:
    """Returns the integers less the zero point."""
    steps = np.divide(blocks, scale)
    np.rint(steps, out=steps)
    return np.clip(steps, low - zero, high - zero, out=steps)


def _usable(scale: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns scales with values of ``dtype``, 1 in place of 0, and none so small that it is imprecise."""
    tiny = max(_TINY, np.float32(np.finfo(dtype).tiny))
    size = np.maximum(np.abs(scale), tiny)
    found = np.where(scale == 0, np.float32(1), np.copysign(size, scale))
    return found.astype(dtype).astype(np.float32)
