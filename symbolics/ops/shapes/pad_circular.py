"""aten::_pad_circular: pads each end with elements of the other end."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integers

Array = np.ndarray


def _result(x: TensorType, pad: list[int]) -> TensorType:
    if len(pad) % 2 or len(pad) > 2 * x.rank or min(pad, default=0) < 0:
        raise ValueError(f"pad {pad} must have two non-negative entries per padded axis of {x}")
    shape = list(x.shape)
    for axis, before, after in _axes(x.rank, pad):
        if max(before, after) > shape[axis]:
            raise ValueError(
                f"circular padding by {before} and {after} exceeds the axis of {shape[axis]} elements"
            )
        shape[axis] = before + shape[axis] + after
    return TensorType(x.dtype, tuple(shape))


def _axes(rank: int, pad: list[int]) -> list[tuple[int, int, int]]:
    """Yields (axis, before, after); ATen starts with the last axis."""
    return [(rank - 1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]


pad_circular = Op("aten::_pad_circular", args=[Tensor("x", ANY_DTYPE), integers("pad")], result=_result)


@pad_circular.reference
def pad_circular_ref(x: Array, pad: list[int]) -> Array:
    """``pad`` is [before, after] of the last axis, the one before, ... Source: torch.nn.functional.pad."""
    widths = [(0, 0)] * x.ndim
    for axis, before, after in _axes(x.ndim, pad):
        widths[axis] = (before, after)
    return np.pad(x, widths, "wrap")


@pad_circular.onnx(since=19)  # the mode wrap is new
def pad_circular_onnx19(g, x, pad):
    amounts = [0] * (2 * len(x.shape))
    for axis, before, after in _axes(len(x.shape), pad):
        amounts[axis], amounts[len(x.shape) + axis] = before, after
    return g.op("Pad", x, g.ints(amounts), mode="wrap")


@pad_circular.decompose
def pad_circular_slices(g, x, pad):
    for axis, before, after in _axes(g.type(x).rank, pad):
        extent = g.type(x).shape[axis]
        parts = [x]
        if before:
            parts.insert(0, g.call("aten::slice", x, axis, extent - before, extent))
        if after:
            parts.append(g.call("aten::slice", x, axis, 0, after))
        x = g.call("aten::cat", parts, axis)
    return x
