"""aten::diagonal, aten::diag_embed and aten::diagonal_scatter."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.symbolic.clamps import minimum, positive
from tmconvert.ir.symbolic.dims import Size, is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integer
from tmconvert.symbolics.results import normalized_axis

Array = np.ndarray


def _plane(rank: int, dim1: int, dim2: int) -> tuple[int, int, list[int]]:
    """Returns the two axes, and the others."""
    first, second = normalized_axis(dim1, rank), normalized_axis(dim2, rank)
    if first == second:
        raise ValueError(f"the axes {dim1} and {dim2} are equal")
    return first, second, [axis for axis in range(rank) if axis not in (first, second)]


def _count(rows: Size, columns: Size, offset: int) -> Size:
    return positive(minimum(rows, columns - offset) if offset >= 0 else minimum(rows + offset, columns))


def _diagonal_result(x: TensorType, offset: int, dim1: int, dim2: int) -> TensorType:
    first, second, others = _plane(x.rank, dim1, dim2)
    count = _count(x.shape[first], x.shape[second], offset)
    return TensorType(x.dtype, (*(x.shape[axis] for axis in others), count))


def _embed_result(x: TensorType, offset: int, dim1: int, dim2: int) -> TensorType:
    first, second, others = _plane(x.rank + 1, dim1, dim2)
    shape = [0] * (x.rank + 1)
    for axis, extent in zip(others, x.shape, strict=False):
        shape[axis] = extent
    shape[first] = shape[second] = x.shape[-1] + abs(offset)
    return TensorType(x.dtype, tuple(shape))


def _scatter_result(x: TensorType, src: TensorType, offset: int, dim1: int, dim2: int) -> TensorType:
    if src != _diagonal_result(x, offset, dim1, dim2):
        raise ValueError(f"src {src} does not fit a diagonal of {x}")
    return x


diagonal = Op(
    "aten::diagonal",
    args=[Tensor("x", ANY_DTYPE), integer("offset", 0), integer("dim1", 0), integer("dim2", 1)],
    result=_diagonal_result,
)
diag_embed = Op(
    "aten::diag_embed",
    args=[Tensor("x", ANY_DTYPE), integer("offset", 0), integer("dim1", -2), integer("dim2", -1)],
    result=_embed_result,
)
diagonal_scatter = Op(
    "aten::diagonal_scatter",
    args=[
        Tensor("x", ANY_DTYPE), Tensor("src", ANY_DTYPE), integer("offset", 0), integer("dim1", 0),
        integer("dim2", 1),
    ],
    result=_scatter_result,
)  # fmt: skip
OPS = [diagonal, diag_embed, diagonal_scatter]


@diagonal.reference
def diagonal_ref(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The elements [i, i + offset] of the plane of two axes, as the last axis."""
    return np.ascontiguousarray(x.diagonal(offset, dim1, dim2))


@diagonal.decompose
def diagonal_strided(g, x, offset, dim1, dim2):
    """In flattened rows, a diagonal is every (columns + 1)th element."""
    type_ = g.type(x)
    first, second, others = _plane(type_.rank, dim1, dim2)
    order, before = [*others, first, second], [type_.shape[axis] for axis in others]
    rows, columns = type_.shape[first], type_.shape[second]
    count = _count(rows, columns, offset)
    if order != sorted(order):
        x = g.call("aten::permute", x, order)
    row = g.call("aten::reshape", x, [*before, rows * columns])
    start = offset if offset >= 0 else -offset * columns
    if is_symbolic([rows, columns]):
        places = numbers(g, start, start + count * (columns + 1), columns + 1)
        return g.call("aten::index_select", row, len(before), places)
    end = start + (count - 1) * (columns + 1) + 1 if count else start
    return g.call(
        "aten::slice", row, len(before), min(start, rows * columns), min(end, rows * columns), columns + 1
    )


@diag_embed.reference
def diag_embed_ref(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Writes the last axis of ``x`` to the elements [i, i + offset] of a plane of zeros."""
    size = x.shape[-1] + abs(offset)
    places = np.arange(x.shape[-1])
    result = np.zeros((*x.shape[:-1], size, size), x.dtype)
    result[..., places + max(-offset, 0), places + max(offset, 0)] = x
    return np.ascontiguousarray(np.moveaxis(result, (-2, -1), (dim1, dim2)))


@diag_embed.decompose
def diag_embed_masked(g, x, offset, dim1, dim2):
    """Broadcasts ``x`` to every row, shifted by the offset, and masks all but one element."""
    type_ = g.type(x)
    *before, count = type_.shape
    size = count + abs(offset)
    if offset:
        x = g.call("aten::pad", x, [0] * (2 * len(before)) + [max(offset, 0), max(-offset, 0)])
    column = numbers(g, 0, size)
    row = g.call("aten::reshape", g.call("aten::add", column, g.constant(offset, np.int64)), [size, 1])
    x = g.call("aten::reshape", x, [*before, 1, size])
    plane = g.call("aten::where", g.call("aten::eq", column, row), x, g.constant(0, type_.dtype))
    first, second, others = _plane(type_.rank + 1, dim1, dim2)
    order = [*others, first, second]
    if order == sorted(order):
        return plane
    return g.call("aten::permute", plane, [order.index(axis) for axis in range(len(order))])


@diagonal_scatter.reference
def diagonal_scatter_ref(x: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    """``x`` with ``src`` in place of its diagonal, as aten::diagonal gives it."""
    plane = np.moveaxis(x, (dim1, dim2), (-2, -1)).copy()
    places = np.arange(src.shape[-1])
    plane[..., places + max(-offset, 0), places + max(offset, 0)] = src
    return np.ascontiguousarray(np.moveaxis(plane, (-2, -1), (dim1, dim2)))


@diagonal_scatter.decompose
def diagonal_scatter_copied(g, x, src, offset, dim1, dim2):
    type_ = g.type(x)
    first, second, others = _plane(type_.rank, dim1, dim2)
    order, before = [*others, first, second], [type_.shape[axis] for axis in others]
    rows, columns = type_.shape[first], type_.shape[second]
    count = _count(rows, columns, offset)
    if isinstance(count, int) and not count:
        return x
    is_sorted = order == sorted(order)
    plane = x if is_sorted else g.call("aten::permute", x, order)
    start = offset if offset >= 0 else -offset * columns
    places = numbers(g, start, start + count * (columns + 1), columns + 1)
    row = g.call("aten::reshape", plane, [*before, rows * columns])
    row = g.call("aten::index_copy", row, len(before), places, src)
    plane = g.call("aten::reshape", row, [*before, rows, columns])
    return plane if is_sorted else g.call("aten::permute", plane, [order.index(i) for i in range(len(order))])
