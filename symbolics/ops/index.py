"""aten::index and aten::index_put: elements chosen by tensors of numbers along several axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.dims import broadcast_shapes
from ...ir.types import TensorType
from ..idioms.indices import counted_from_the_front
from ..op import ANY_DTYPE, INDICES, Op, Tensor, Tensors, boolean

Array = np.ndarray


def _index_result(x: TensorType, indices: list[TensorType | None]) -> TensorType:
    axes = _axes(indices)
    if len(indices) > x.rank or not axes:
        raise ValueError(f"{len(indices)} indices for {x}")
    common = broadcast_shapes(*(index.shape for index in indices if index is not None))
    before, behind = _around(x.shape, axes)
    return TensorType(x.dtype, (*before, *common, *behind))


def _put_result(
    x: TensorType, indices: list[TensorType | None], values: TensorType, accumulate: bool
) -> TensorType:
    mask = _mask(indices)
    if mask is None:
        part = _index_result(x, indices)
    else:  # of unknown size; a value for all of it is known
        first, behind = _axes(indices)[0], _behind_mask(x.shape, indices)
        if x.shape[first : x.rank - len(behind)] != mask.shape:
            raise ValueError(f"the mask {mask} does not fit {x} at axis {first}")
        part = TensorType(x.dtype, (*x.shape[:first], 1, *behind))
    if values.dtype != x.dtype or broadcast_shapes(values.shape, part.shape) != part.shape:
        raise ValueError(f"values {values} do not fit the part {part}")
    return x


def _mask(indices: Sequence[TensorType | None]) -> TensorType | None:
    """The one index, if it is a mask. Raises ValueError for a mask among others."""
    given = [each for each in indices if each is not None]
    if not any(each.dtype == np.bool_ for each in given):
        return None
    if len(given) > 1:
        raise ValueError("a mask beside other indices selects as many elements as the data say")
    return given[0]


def _behind_mask(shape: Sequence[int], indices: Sequence[Any]) -> Sequence[int]:
    """Extents behind the axes of the mask."""
    first = _axes(indices)[0]
    return shape[first + indices[first].rank :]


def _axes(indices: Sequence[Any]) -> list[int]:
    return [axis for axis, index in enumerate(indices) if index is not None]


def _around(shape: Sequence[int], axes: list[int]) -> tuple[list[int], list[int]]:
    """Extents in front of the axes of the indices, and behind; all behind where these axes are apart."""
    if axes != list(range(axes[0], axes[-1] + 1)):
        return [], [extent for axis, extent in enumerate(shape) if axis not in axes]
    return list(shape[: axes[0]]), list(shape[axes[-1] + 1 :])


index = Op(
    "aten::index",
    args=[Tensor("x", ANY_DTYPE), Tensors("indices", INDICES, optional=True)],
    result=_index_result,
)
index_put = Op(
    "aten::index_put",
    args=[
        Tensor("x", ANY_DTYPE),
        Tensors("indices", (*INDICES, "bool"), optional=True),
        Tensor("values", ANY_DTYPE),
        boolean("accumulate", False),
    ],
    result=_put_result,
)
OPS = [index, index_put]


def _numpy_index(indices: list[Array | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


@index.reference
def index_ref(x: Array, indices: list[Array | None]) -> Array:
    """``x[indices]``, None standing for all of an axis.

    The broadcast shape of the indices takes the place of their axes; where these are not neighbours,
    it comes first. Source: NumPy's advanced indexing.
    """
    return x[_numpy_index(indices)]


@index.onnx(since=13)  # Unsqueeze takes the axis as an input
def index_onnx13(g, x, indices):
    axes = _axes(indices)
    if len(axes) == 1:
        return g.op("Gather", x, indices[axes[0]], axis=axes[0])
    common = broadcast_shapes(*(indices[axis].shape for axis in axes))
    before, behind = _around(x.shape, axes)
    rest = [axis for axis in range(len(x.shape)) if axis not in axes]
    if [*axes, *rest] != sorted(rest + axes):
        order = [*axes, *rest]
        x = g.op("Transpose", x, perm=order, shape=[x.shape[axis] for axis in order])
    part = g.op("GatherND", x, _side_by_side(g, indices, axes, common), shape=(*common, *before, *behind))
    if not before:
        return part
    ranks = len(common), len(before), len(behind)
    order = [*range(ranks[0], ranks[0] + ranks[1]), *range(ranks[0]), *range(ranks[0] + ranks[1], sum(ranks))]
    return g.op("Transpose", part, perm=order)


def _side_by_side(g: Any, indices: list[Any], axes: list[int], common: tuple[int, ...]) -> Any:
    """int64 [*common, axes]: for each element its index along every axis."""
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
    axes, shape = _axes(indices), g.type(x).shape
    before, behind = _around(shape, axes)
    places, common = _linear(g, indices, axes, shape)
    rows = _merged(g, x, list(range(len(before))), axes)
    part = g.call("aten::index_select", rows, len(before), places)
    return g.call("aten::reshape", part, [*before, *common, *behind])


@index_put.reference
def index_put_ref(x: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    """``x`` with ``values`` in the place of ``x[indices]``, or added there.

    Of two values for one place the later one counts. An index may be one mask, over as many axes as it
    has, when ``values`` have one value for all that it selects.
    """
    result = x.copy()
    if accumulate:
        np.add.at(result, _numpy_index(indices), values)
    else:
        result[_numpy_index(indices)] = values
    return result


@index_put.decompose
def index_put_copied(g, x, indices, values, accumulate):
    if _mask([None if each is None else g.type(each) for each in indices]) is not None:
        return _put_under_mask(g, x, indices, values, accumulate)
    axes, type_ = _axes(indices), g.type(x)
    before, behind = _around(type_.shape, axes)
    places, common = _linear(g, indices, axes, type_.shape)
    part = [*before, *common, *behind]
    if g.type(values).shape != tuple(part):
        values = g.call("aten::expand", values, part)
    rows = _merged(g, values, [], list(range(len(before), len(before) + len(common))))
    put = "aten::index_add" if accumulate else "aten::index_copy"
    moved = g.call(put, _merged(g, x, [], axes), 0, places, rows)
    order = [*axes, *(axis for axis in range(type_.rank) if axis not in axes)]
    moved = g.call("aten::reshape", moved, [type_.shape[axis] for axis in order])
    return g.call("aten::permute", moved, [order.index(axis) for axis in range(type_.rank)])


def _put_under_mask(g: Any, x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
    types = [None if each is None else g.type(each) for each in indices]
    behind, shape = _behind_mask(g.type(x).shape, types), list(g.type(values).shape)
    mask = indices[_axes(indices)[0]]
    extents = g.type(mask).shape
    if len(shape) > len(behind):  # the axis of what the mask selects becomes those of the mask
        place = len(shape) - len(behind) - 1
        shape[place : place + 1] = [1] * len(extents)
        values = g.call("aten::reshape", values, shape)
    mask = g.call("aten::reshape", mask, [*extents, *[1] * len(behind)])
    if accumulate:
        values = g.call("aten::add", x, values)
    return g.call("aten::where", mask, values, x)


def _merged(g: Any, x: Any, front: list[int], axes: list[int]) -> Any:
    """``x`` with the axes ``front`` in front, then one made of ``axes``, then the others."""
    shape = g.type(x).shape
    others = [axis for axis in range(len(shape)) if axis not in front and axis not in axes]
    order = [*front, *axes, *others]
    if order != sorted(order):
        x = g.call("aten::permute", x, order)
    extents = [[shape[axis] for axis in part] for part in (front, axes, others)]
    return g.call("aten::reshape", x, [*extents[0], math.prod(extents[1]), *extents[2]])


def _linear(g: Any, indices: list[Any], axes: list[int], shape: Sequence[int]) -> tuple[Any, list[Any]]:
    """The indices of ``axes`` as those of one axis, in a row; and their common shape."""
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


for _op in OPS:
    _op.unsupported("caffe", "not written yet for Caffe")
