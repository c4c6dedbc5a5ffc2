"""Shapes: reshape, transpose, expand, and sizes as tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, rank, reshaped, scalar, static_ints
from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.journal import retried

OPERATORS = OperatorTable()


@OPERATORS.add("Shape")
def shape_of(g, data, *, start=0, end=None):
    return g.constant(list(g.type(data).shape[start:end]), np.int64)


OPERATORS.add("Size")(lambda g, data: g.constant(g.type(data).size, np.int64))


@OPERATORS.add("Reshape", since=5)
def reshape(g, data, shape, *, allowzero=0, opened=None):
    if g.sizes(shape) is None:
        raise Refusal("the shape of Reshape depends on the data", "make it a constant of the model")
    sizes = static_ints(g, shape, "the shape of Reshape")
    if opened and g.known(shape) is not None:
        from tmconvert.frontends.shared.opened_sizes import opened_shape

        sizes = opened_shape(g, data, sizes, opened)
    return _reshaped(g, data, sizes, bool(allowzero))


@OPERATORS.add("Reshape")
def reshape1(g, data, *, shape, consumed_inputs=None):
    return _reshaped(g, data, list(shape), False)


def _reshaped(g: Emitter, x, shape: list[Any], allows_zero: bool) -> Any:
    """A 0 stands for the size of the same axis, unless ``allows_zero``."""
    old = g.type(x).shape
    if not allows_zero:
        shape = [old[axis] if _is(size, 0) else size for axis, size in enumerate(shape)]
    return reshaped(g, x, shape)


def _is(size, number: int) -> bool:
    return isinstance(size, int) and size == number


@OPERATORS.add("Flatten")
def flatten(g, input, *, axis=1):
    shape = g.type(input).shape
    place = axis + len(shape) if axis < 0 else axis
    return reshaped(g, input, [math.prod(shape[:place]), math.prod(shape[place:])])


@OPERATORS.add("Transpose")
def transpose(g, data, *, perm=None):
    order = list(perm) if perm is not None else list(range(rank(g, data)))[::-1]
    return data if order == sorted(order) else g.call("aten::permute", data, order)


@OPERATORS.add("Squeeze", since=13)
def squeeze(g, data, axes=None):
    return _squeezed(g, data, None if axes is None else static_ints(g, axes, "the axes of Squeeze"))


OPERATORS.add("Squeeze")(lambda g, data, *, axes=None: _squeezed(g, data, axes))


def _squeezed(g: Emitter, x, axes: Sequence[int] | None) -> Any:
    shape = g.type(x).shape
    places = (
        [axis for axis, size in enumerate(shape) if _is(size, 1)]
        if axes is None
        else [axis_of(g, x, axis) for axis in axes]
    )

    def check() -> None:
        if any(shape[axis] != 1 for axis in places):
            raise Refusal(f"Squeeze removes an axis of {g.type(x)} that is not of size 1")

    retried(check, Refusal)
    return reshaped(g, x, [size for axis, size in enumerate(shape) if axis not in places])


@OPERATORS.add("Unsqueeze", since=13)
def unsqueeze(g, data, axes):
    return _unsqueezed(g, data, static_ints(g, axes, "the axes of Unsqueeze"))


OPERATORS.add("Unsqueeze")(lambda g, data, *, axes: _unsqueezed(g, data, axes))


def _unsqueezed(g: Emitter, x, axes: Sequence[int]) -> Any:
    count = rank(g, x) + len(axes)
    places = {axis % count for axis in axes}
    if len(places) != len(axes):
        raise Refusal(f"Unsqueeze has the same axis twice: {list(axes)}")
    sizes = iter(g.type(x).shape)
    return reshaped(g, x, [1 if axis in places else next(sizes) for axis in range(count)])


@OPERATORS.add("Expand")
def expand(g, input, shape, *, opened=None):
    wanted = static_ints(g, shape, "the shape of Expand")
    if opened:
        from tmconvert.frontends.shared.opened_sizes import with_opened_batch

        wanted = with_opened_batch(g, input, wanted, opened)
    whole = list(broadcast_shapes(g.type(input).shape, tuple(wanted)))
    return input if tuple(whole) == g.type(input).shape else g.call("aten::expand", input, whole)


@OPERATORS.add("Tile", since=6)
def tile(g, input, repeats):
    return g.call("aten::repeat", input, static_ints(g, repeats, "the repeats of Tile"))


@OPERATORS.add("Tile")
def tile1(g, input, tiles, axis):
    counts = [1] * rank(g, input)
    counts[axis_of(g, input, int(scalar(g, axis, "the axis of Tile")))] = int(
        scalar(g, tiles, "the repeats of Tile")
    )
    return g.call("aten::repeat", input, counts)


@OPERATORS.add("DepthToSpace")
def depth_to_space(g, input, *, blocksize, mode="DCR"):
    if mode == "CRD":
        return g.call("aten::pixel_shuffle", input, blocksize)
    batch, channels, height, width = g.type(input).shape
    each = channels // blocksize**2
    parts = reshaped(g, input, [batch, blocksize, blocksize, each, height, width])
    moved = g.call("aten::permute", parts, [0, 3, 4, 1, 5, 2])
    return reshaped(g, moved, [batch, each, height * blocksize, width * blocksize])


@OPERATORS.add("SpaceToDepth")
def space_to_depth(g, input, *, blocksize, mode="DCR"):
    batch, channels, height, width = g.type(input).shape
    rows, columns = height // blocksize, width // blocksize
    parts = reshaped(g, input, [batch, channels, rows, blocksize, columns, blocksize])
    moved = g.call("aten::permute", parts, [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4])
    return reshaped(g, moved, [batch, channels * blocksize**2, rows, columns])
