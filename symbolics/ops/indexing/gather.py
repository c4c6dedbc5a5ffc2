"""aten::gather and aten::scatter along one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import counted_from_the_front, from_the_front, numbers
from tmconvert.symbolics.op import ANY_DTYPE, INDICES, Argument, Op, Tensor, integer
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import IndexesAxis, KeepsQparams, SelectsElements

Array = np.ndarray


def _check(x: TensorType, dim: int, index: TensorType) -> None:
    axis = normalized_axis(dim, x.rank)
    if index.rank != x.rank or any(index.shape[i] > x.shape[i] for i in range(x.rank) if i != axis):
        raise ValueError(f"index {index} does not fit {x} along axis {dim}")


def _gather_result(x: TensorType, dim: int, index: TensorType) -> TensorType:
    _check(x, dim, index)
    return TensorType(x.dtype, index.shape)


def scatter_result(x: TensorType, dim: int, index: TensorType, src: TensorType) -> TensorType:
    _check(x, dim, index)
    if src != TensorType(x.dtype, index.shape):
        raise ValueError(f"src {src} must have the type of {x} and the shape of {index}")
    return x


PLACES: list[Argument] = [integer("dim"), Tensor("index", INDICES)]
gather = Op(
    "aten::gather",
    args=[Tensor("x", ANY_DTYPE), *PLACES],
    result=_gather_result,
    traits=[KeepsQparams(), SelectsElements(), IndexesAxis()],
)
scatter = Op(
    "aten::scatter", args=[Tensor("x", ANY_DTYPE), *PLACES, Tensor("src", ANY_DTYPE)], result=scatter_result
)
OPS = [gather, scatter]


def element_indices(index: Array, dim: int) -> tuple[Array, ...]:
    """Returns ``index`` along ``dim``, and coordinates along the other axes."""
    places: list[Array] = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    return tuple(places)


@gather.reference
def gather_ref(x: Array, dim: int, index: Array) -> Array:
    """result[i][j][k] = x[index[i][j][k]][j][k] for ``dim`` 0. Source: torch.gather."""
    return x[element_indices(index, dim)]


gather.onnx(since=11)(lambda g, x, dim, index: g.op("GatherElements", x, index, axis=dim % len(x.shape)))


@gather.decompose
def gather_selected(g, x, dim, index):
    row = g.call("aten::reshape", x, [g.type(x).size])
    part = g.call("aten::index_select", row, 0, _in_a_row(g, g.type(x).shape, dim, index))
    return g.call("aten::reshape", part, list(g.type(index).shape))


@scatter.reference
def scatter_ref(x: Array, dim: int, index: Array, src: Array) -> Array:
    """result[index[i][j][k]][j][k] = src[i][j][k] for ``dim`` 0; for duplicates the last one wins."""
    result = x.copy()
    result[element_indices(index, dim)] = src
    return result


@scatter.onnx(since=11)  # takes negative indices
def scatter_onnx11(g, x, dim, index, src):
    return g.op("ScatterElements", x, index, src, axis=dim % len(x.shape), shape=x.shape)


@scatter.onnx(since=9)
def scatter_onnx9(g, x, dim, index, src):
    axis = dim % len(x.shape)
    return g.op("Scatter", x, from_the_front(g, index, x.shape[axis]), src, axis=axis, shape=x.shape)


@scatter.decompose
def scatter_copied(g, x, dim, index, src):
    type_, count = g.type(x), g.type(index).size
    places = _in_a_row(g, type_.shape, dim, index)
    row = g.call("aten::reshape", x, [type_.size])
    row = g.call("aten::index_copy", row, 0, places, g.call("aten::reshape", src, [count]))
    return g.call("aten::reshape", row, list(type_.shape))


def _in_a_row(g: Any, shape: Sequence[int], dim: int, index: Any) -> Any:
    """Returns the flat indices of ``index`` in a tensor of ``shape``."""
    axis = dim % len(shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    along = counted_from_the_front(g, g.call("aten::to", index, "int64"), shape[axis])
    place = g.call("aten::mul", along, g.constant(strides[axis], np.int64))
    rest = np.zeros([1] * len(shape), np.int64)
    for i, (extent, stride) in enumerate(zip(g.type(index).shape, strides, strict=True)):
        column = [1] * i + [extent] + [1] * (len(shape) - i - 1)
        if i != axis and is_symbolic((extent, stride)):
            steps = g.call("aten::reshape", numbers(g, 0, extent * stride, stride), column)
            place = g.call("aten::add", place, steps)
        elif i != axis:
            rest = rest + np.arange(extent).reshape(column) * stride
    if rest.any():
        place = g.call("aten::add", place, g.constant(rest))
    return g.call("aten::reshape", place, [g.type(index).size])
