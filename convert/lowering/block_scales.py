"""Scales and zero points of weights in blocks of four bits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from tmconvert.ir.lazy_constants import Array, computed
from tmconvert.lowering.rounded_constants import pieces

ScaleRule = Literal["max", "mse", "asymmetric"]
_LEAST, _MOST, _LEVELS = -8, 7, 15
_TINY = np.float32(np.finfo(np.float32).tiny)
# of the largest element, and of both ends of the range: where searches start
_SHRINKS = tuple(float(each) for each in np.linspace(8 / 7, 0.6, 14))
_ENDS = tuple(product((1.0, 0.93, 0.86, 0.79, 0.72), repeat=2))


class Steps(NamedTuple):
    """Parameters of integers from ``low`` to ``high``, whose axis of elements has length 1.

    ``zero_point`` is None for 0.
    """

    scale: np.ndarray
    zero_point: np.ndarray | None
    low: int
    high: int


def block_scales(blocks: Array, axis: int, rule: ScaleRule, dtype: np.dtype) -> Steps:
    """Returns the parameters with which ``blocks`` are rounded, each of them along ``axis``.

    ``rule`` "max" takes a seventh of the largest magnitude, "mse" the scale with the least sum of squared
    errors among those that a search tries, and "asymmetric" such a scale with a zero point from 0 to 15.
    Scales are float32 with values of ``dtype``. Blocks are read a few at a time.
    """
    found = [_parameters(np.moveaxis(computed(piece), axis, -1), rule, dtype) for piece in pieces(blocks)]
    scale = np.moveaxis(np.concatenate([scale for scale, _ in found]), -1, axis)
    if rule != "asymmetric":
        return Steps(scale, None, -_MOST if rule == "max" else _LEAST, _MOST)
    zero_point = np.concatenate([zero for _, zero in found if zero is not None])
    return Steps(scale, np.moveaxis(zero_point, -1, axis), 0, _LEVELS)


def _parameters(blocks: np.ndarray, rule: ScaleRule, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
    if rule == "max":
        return _usable(np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(_MOST), dtype), None
    blocks = np.ascontiguousarray(blocks)
    scales, zeros = None, np.float32(0)
    low, high = (0, _LEVELS) if rule == "asymmetric" else (_LEAST, _MOST)
    candidates = _ranges(blocks) if rule == "asymmetric" else _largest(blocks)
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


def _largest(blocks: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scales with which the element of largest magnitude is -8, or beyond it."""
    most = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1)[..., None], -1)
    for shrink in _SHRINKS:
        yield most * np.float32(shrink / _LEAST), np.float32(0)


def _ranges(blocks: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scales and zero points for the range of each block, and for smaller ones."""
    yield np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(_MOST), np.float32(-_LEAST)
    low = np.minimum(blocks.min(axis=-1, keepdims=True), 0)
    high = np.maximum(blocks.max(axis=-1, keepdims=True), 0)
    for of_low, of_high in _ENDS:
        scale = (high * np.float32(of_high) - low * np.float32(of_low)) / np.float32(_LEVELS)
        zero = np.rint(np.divide(-low * np.float32(of_low), scale, out=np.zeros_like(scale), where=scale > 0))
        yield scale, np.clip(zero, 0, _LEVELS)


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
