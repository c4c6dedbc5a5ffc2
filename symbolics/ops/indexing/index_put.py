"""aten::index_put: writes elements selected by index tensors, or by a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import Ints, TensorType
from tmconvert.symbolics.idioms.indices import scattered
from tmconvert.symbolics.op import ANY_DTYPE, INDICES, Op, Tensor, Tensors, boolean
from tmconvert.symbolics.ops.indexing.index import (
    around,
    axes_of,
    fronts,
    index_result,
    linear,
    merged,
    numpy_index,
    side_by_side,
    transposed,
)

Array = np.ndarray


def _put_result(x: TensorType, indices: list[TensorType | None], values: TensorType, **_: Any) -> TensorType:
    mask = _mask(indices)
    if mask is None:
        part = index_result(x, indices)
    else:  # of unknown size; a value for all of it is known
        first, after = axes_of(indices)[0], _after_mask(x.shape, indices)
        if x.shape[first : x.rank - len(after)] != mask.shape:
            raise ValueError(f"the mask {mask} does not fit {x} at axis {first}")
        part = TensorType(x.dtype, (*x.shape[:first], 1, *after))
    if values.dtype != x.dtype or broadcast_shapes(values.shape, part.shape) != part.shape:
        raise ValueError(f"values {values} do not broadcast to the selected part {part}")
    return x


def _mask(indices: Sequence[Any]) -> Any:
    """Returns the only index, if it is a mask. Raises ValueError for a mask among others."""
    given = [each for each in indices if each is not None]
    if not any(each.dtype == np.bool_ for each in given):
        return None
    if len(given) > 1:
        raise ValueError("a mask combined with other indices has a data-dependent number of elements")
    return given[0]


def _after_mask(shape: Sequence[int], indices: Sequence[Any]) -> Sequence[int]:
    """Returns the extents after the axes of the mask."""
    first = axes_of(indices)[0]
    return shape[first + len(indices[first].shape) :]


index_put = Op(
    "aten::index_put",
    args=[
        Tensor("x", ANY_DTYPE), Tensors("indices", (*INDICES, "bool"), optional=True),
        Tensor("values", ANY_DTYPE), boolean("accumulate", False),
    ],
    result=_put_result,
)  # fmt: skip


@index_put.reference
def index_put_ref(x: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    """Writes ``values`` to ``x[indices]``, or adds them there.

    For duplicate indices the last value is written. An index may be one mask, which covers as many axes as
    its rank, if ``values`` has a single element.
    """
    result = x.copy()
    if accumulate:
        np.add.at(result, numpy_index(indices), values)
    else:
        result[numpy_index(indices)] = values
    return result


@index_put.onnx(since=16)  # the attribute reduction
def index_put_onnx16(g, x, indices, values, accumulate):
    axes = axes_of(indices)
    if _mask(indices) is not None:
        mask_shape, shape = _under_mask(x.shape, indices, values.shape)
        mask = g.op("Reshape", indices[axes[0]], g.ints(mask_shape), shape=mask_shape)
        values = g.op("Reshape", values, g.ints(shape), shape=shape)
        if accumulate:
            values = g.op("Or" if x.dtype == np.bool_ else "Add", x, values)
        return g.op("Where", mask, values, x, dtype=x.dtype)
    common, orders = fronts(indices, axes, x.shape)
    before, after = around(x.shape, axes)
    part = (*before, *common, *after)
    if values.shape != part:
        values = g.op("Expand", values, g.ints(part), shape=part)
    values, moved = transposed(g, values, orders[1]), transposed(g, x, orders[0])
    places = side_by_side(g, indices, axes, common)
    if accumulate:
        moved = scattered(g, "ScatterND", moved, places, values, reduction="add")
    else:
        moved = g.op("ScatterND", moved, places, values, shape=moved.shape)
    return transposed(g, moved, np.argsort(orders[0]).tolist())


@index_put.decompose
def index_put_copied(g, x, indices, values, accumulate):
    axes, type_ = axes_of(indices), g.type(x)
    types = [None if each is None else g.type(each) for each in indices]
    if _mask(types) is not None:
        return _put_under_mask(g, x, types, indices[axes[0]], values, accumulate)
    before, after = around(type_.shape, axes)
    places, common = linear(g, indices, axes, type_.shape)
    part = [*before, *common, *after]
    if g.type(values).shape != tuple(part):
        values = g.call("aten::expand", values, part)
    rows = merged(g, values, [], list(range(len(before), len(before) + len(common))))
    put = "aten::index_add" if accumulate else "aten::index_copy"
    moved = g.call(put, merged(g, x, [], axes), 0, places, rows)
    order = [*axes, *(axis for axis in range(type_.rank) if axis not in axes)]
    moved = g.call("aten::reshape", moved, [type_.shape[axis] for axis in order])
    return g.call("aten::permute", moved, [order.index(axis) for axis in range(type_.rank)])


def _put_under_mask(g: Any, x: Any, types: list[Any], mask: Any, values: Any, accumulate: bool) -> Any:
    mask_shape, shape = _under_mask(g.type(x).shape, types, g.type(values).shape)
    mask, values = g.call("aten::reshape", mask, mask_shape), g.call("aten::reshape", values, shape)
    if accumulate:
        values = g.call("aten::logical_or" if g.type(x).dtype == np.bool_ else "aten::add", x, values)
    return g.call("aten::where", mask, values, x)


def _under_mask(shape: Sequence[int], indices: Sequence[Any], values: Sequence[int]) -> tuple[Ints, Ints]:
    """Returns shapes to broadcast mask and values: the axis of selected elements becomes the mask's axes."""
    after, mask = _after_mask(shape, indices), indices[axes_of(indices)[0]].shape
    spread, place = list(values), len(values) - len(after) - 1
    if place >= 0:
        spread[place : place + 1] = [1] * len(mask)
    return [*mask, *[1] * len(after)], spread
