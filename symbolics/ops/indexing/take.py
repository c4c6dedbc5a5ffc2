"""aten::take by flat indices, and aten::take_along_dim."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import ANY_DTYPE, INDICES, Op, Tensor, integer
from tmconvert.symbolics.results import normalized_axis

Array = np.ndarray


def _take_result(x: TensorType, index: TensorType) -> TensorType:
    return TensorType(x.dtype, index.shape)


def _along_result(x: TensorType, indices: TensorType, dim: int | None) -> TensorType:
    if dim is None:
        return TensorType(x.dtype, (indices.size,))
    return TensorType(x.dtype, tuple(_common(x, indices, dim)[1]))


def _common(x: TensorType, indices: TensorType, dim: int) -> tuple[list[Any], list[Any]]:
    """Broadcasts the shapes of ``x`` and ``indices`` except along ``dim``."""
    axis = normalized_axis(dim, x.rank)
    if x.rank != indices.rank:
        raise ValueError(f"indices {indices} must have as many axes as {x}")
    shapes = [list(type_.shape) for type_ in (x, indices)]
    extents = [shape[axis] for shape in shapes]
    for shape in shapes:
        shape[axis] = 1
    both = list(broadcast_shapes(*map(tuple, shapes)))
    first, second = ([*both[:axis], extent, *both[axis + 1 :]] for extent in extents)
    return first, second


take = Op("aten::take", args=[Tensor("x", ANY_DTYPE), Tensor("index", INDICES)], result=_take_result)
take_along_dim = Op(
    "aten::take_along_dim",
    args=[Tensor("x", ANY_DTYPE), Tensor("indices", INDICES), integer("dim", None)],
    result=_along_result,
)
OPS = [take, take_along_dim]


@take.reference
def take_ref(x: Array, index: Array) -> Array:
    """Elements of flattened ``x``; a negative index counts from the end."""
    return x.reshape(-1)[index]


@take.decompose
def take_selected(g, x, index):
    row = g.call("aten::reshape", x, [g.type(x).size])
    places = g.call("aten::reshape", index, [g.type(index).size])
    return g.call("aten::reshape", g.call("aten::index_select", row, 0, places), list(g.type(index).shape))


@take_along_dim.reference
def take_along_dim_ref(x: Array, indices: Array, dim: int | None) -> Array:
    """Like aten::gather, with broadcasting along the other axes; flattened without ``dim``."""
    if dim is None:
        return x.reshape(-1)[indices.reshape(-1)]
    return np.take_along_axis(x, indices, dim)


@take_along_dim.decompose
def take_along_dim_gathered(g, x, indices, dim):
    if dim is None:
        return take_selected(g, x, g.call("aten::reshape", indices, [g.type(indices).size]))
    shapes = _common(g.type(x), g.type(indices), dim)
    x, indices = (
        value if list(g.type(value).shape) == shape else g.call("aten::expand", value, shape)
        for value, shape in zip((x, indices), shapes, strict=True)
    )
    return g.call("aten::gather", x, dim, indices)
