"""What several Caffe symbolics share: Caffe layers do not broadcast, so broadcasting is made of Scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...lower.builder import Builder
    from ...lower.target_graph import Value


def covered_axes(shape: Sequence[int], full: Sequence[int]) -> tuple[int, int]:
    """The range [first, end) of axes in which ``shape`` (of the rank of ``full``) is not 1.

    A Scale layer's second operand must cover a contiguous range of axes of the first.
    """
    varying = [axis for axis, extent in enumerate(shape) if extent != 1]
    return (varying[0], varying[-1] + 1) if varying else (0, 0)


def padded_shape(x: Value, rank: int) -> tuple[int, ...]:
    """The shape of ``x`` with ones in front up to ``rank``."""
    return (1,) * (rank - len(x.shape)) + x.shape


def reshaped(g: Builder, x: Value, shape: Sequence[int]) -> Value:
    """``x`` with another shape: a view where it is constant, else a Reshape layer."""
    if tuple(shape) == x.shape:
        return x
    if x.data is not None:
        return g.const(x.data.reshape(shape), name=x.name)
    return g.op("Reshape", x, **{"shape.dim": list(shape)}, shape=shape)


def scaled(g: Builder, x: Value, gamma: np.ndarray | None, beta: np.ndarray | None) -> Value:
    """x * gamma + beta with constants that broadcast to the shape of ``x`` (equal rank)."""
    constants = [value for value in (gamma, beta) if value is not None]
    if all(value.size == 1 for value in constants):
        scale = 1.0 if gamma is None else float(gamma.reshape(-1)[0])
        shift = 0.0 if beta is None else float(beta.reshape(-1)[0])
        return g.op("Power", x, power=1.0, scale=scale, shift=shift)
    first, end = covered_axes(np.broadcast_shapes(*(value.shape for value in constants)), x.shape)
    block = x.shape[first:end]
    gamma = np.ones((1,) * len(x.shape), x.dtype) if gamma is None else gamma
    blobs = [
        np.broadcast_to(value.reshape(value.shape[first:end]), block)
        for value in (gamma, beta)
        if value is not None
    ]
    return g.op(
        "Scale",
        x,
        *(g.const(np.ascontiguousarray(blob)) for blob in blobs),
        axis=first,
        num_axes=end - first,
        bias_term=len(blobs) == 2,
        shape=x.shape,
    )


def multiplied(g: Builder, x: Value, factor: Value) -> Value:
    """x * factor where the computed ``factor`` broadcasts to the shape of ``x``."""
    shape = padded_shape(factor, len(x.shape))
    first, end = covered_axes(shape, x.shape)
    if shape[first:end] != x.shape[first:end]:
        g.refuse(
            f"Caffe cannot multiply {list(x.shape)} by {list(factor.shape)}: "
            "the axes in which the factor varies must be neighbours"
        )
    end = max(end, first + 1)
    block = reshaped(g, factor, shape[first:end])
    return g.op("Scale", x, block, axis=first, shape=x.shape)


def expanded(g: Builder, x: Value, like: Value) -> Value:
    """``x`` repeated to the shape of ``like``: ones of that shape, times ``x``."""
    if x.shape == like.shape:
        return x
    ones = g.op("Power", like, power=1.0, scale=0.0, shift=1.0)
    return multiplied(g, ones, x)
