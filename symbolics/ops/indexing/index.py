"""aten::index: elements selected by index tensors along several axes; index_put.py uses it too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import counted_from_the_front
from tmconvert.symbolics.op import ANY_DTYPE, INDICES, Op, Tensor, Tensors

Array = np.ndarray


def index_result(x: TensorType, indices: list[TensorType | None]) -> TensorType:
    axes = axes_of(indices)
    if len(indices) > x.rank or not axes:
        raise ValueError(f"{len(indices)} indices for {x}")
    common = broadcast_shapes(*(index.shape for index in indices if index is not None))
    before, after = around(x.shape, axes)
    return TensorType(x.dtype, (*before, *common, *after))


def axes_of(indices: Sequence[Any]) -> list[int]:
    return [axis for axis, index in enumerate(indices) if index is not None]


def around(shape: Sequence[int], axes: list[int]) -> tuple[list[int], list[int]]:
    """Returns the extents before the indexed axes, and after; all after where these axes are not adjacent."""
    if axes != list(range(axes[0], axes[-1] + 1)):
        return [], [extent for axis, extent in enumerate(shape) if axis not in axes]
    return list(shape[: axes[0]]), list(shape[axes[-1] + 1 :])


index = Op(
    "aten::index",
    args=[Tensor("x", ANY_DTYPE), Tensors("indices", INDICES, optional=True)],
    result=index_result,
)


def numpy_index(indices: list[Array | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


@index.reference
def index_ref(x: Array, indices: list[Array | None]) -> Array:
    """``x[indices]``; None selects all of an axis.

    The broadcast shape of the indices takes the place of their axes; where these are not neighbours,
    it comes first. Source: NumPy's advanced indexing.
    """
    return x[numpy_index(indices)]


@index.onnx(since=13)  # Unsqueeze takes the axis as an input
def index_onnx13(g, x, indices):
    axes = axes_of(indices)
    if len(axes) == 1:
        return g.op("Gather", x, indices[axes[0]], axis=axes[0])
    common, orders = fronts(indices, axes, x.shape)
    moved = transposed(g, x, orders[0])
    shape = (*common, *moved.shape[len(axes) :])
    part = g.op("GatherND", moved, side_by_side(g, indices, axes, common), shape=shape)
    return transposed(g, part, np.argsort(orders[1]).tolist())


def fronts(
    indices: Sequence[Any], axes: list[int], shape: Sequence[int]
) -> tuple[tuple[Any, ...], tuple[list[int], list[int]]]:
    """Returns the common shape, and the permutations that move ``axes`` of x and of the part to the start."""
    common = broadcast_shapes(*(indices[axis].shape for axis in axes))
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    first = len(around(shape, axes)[0])
    taken = list(range(first, first + len(common)))
    others = [axis for axis in range(len(common) + len(rest)) if axis not in taken]
    return common, ([*axes, *rest], [*taken, *others])


def transposed(g: Any, x: Any, order: list[int]) -> Any:
    if order == sorted(order):
        return x
    return g.op("Transpose", x, perm=order, shape=[x.shape[axis] for axis in order])


def side_by_side(g: Any, indices: list[Any], axes: list[int], common: tuple[int, ...]) -> Any:
    """int64 [*common, axes]: the indices of each element along every axis."""
    if all(indices[axis].data is not None for axis in axes):
        arrays = np.broadcast_arrays(*(indices[axis].data for axis in axes))
        return g.const(np.stack(arrays, -1).astype(np.int64))
    columns = []
    for axis in axes:
        number = g.cast(indices[axis], "int64")
        if number.shape != common:
            number = g.op("Expand", number, g.ints(common), shape=common)
        columns.append(g.op("Unsqueeze", number, g.ints([len(common)]), shape=(*common, 1)))
    return g.op("Concat", *columns, axis=len(common), shape=(*common, len(axes)))


@index.decompose
def index_selected(g, x, indices):
    axes, shape = axes_of(indices), g.type(x).shape
    before, after = around(shape, axes)
    places, common = linear(g, indices, axes, shape)
    rows = merged(g, x, list(range(len(before))), axes)
    part = g.call("aten::index_select", rows, len(before), places)
    return g.call("aten::reshape", part, [*before, *common, *after])


def merged(g: Any, x: Any, front: list[int], axes: list[int]) -> Any:
    """Moves the axes ``front`` to the start, then merges ``axes``, then the others."""
    shape = g.type(x).shape
    others = [axis for axis in range(len(shape)) if axis not in front and axis not in axes]
    order = [*front, *axes, *others]
    if order != sorted(order):
        x = g.call("aten::permute", x, order)
    extents = [[shape[axis] for axis in part] for part in (front, axes, others)]
    return g.call("aten::reshape", x, [*extents[0], math.prod(extents[1]), *extents[2]])


def linear(g: Any, indices: list[Any], axes: list[int], shape: Sequence[int]) -> tuple[Any, list[Any]]:
    """Returns the flat indices along the merged ``axes``, and their common shape."""
    common = list(broadcast_shapes(*(g.type(indices[axis]).shape for axis in axes)))
    if len(axes) == 1:  # what takes it counts from the end itself
        return g.call("aten::reshape", indices[axes[0]], [math.prod(common)]), common
    total = None
    for axis in axes:
        place = counted_from_the_front(g, g.call("aten::to", indices[axis], "int64"), shape[axis])
        if total is not None:
            place = g.call("aten::add", g.call("aten::mul", total, g.constant(shape[axis], np.int64)), place)
        total = place
    if list(g.type(total).shape) != common:
        total = g.call("aten::expand", total, common)
    return g.call("aten::reshape", total, [math.prod(common)]), common
