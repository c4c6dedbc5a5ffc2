"""aten::gather and aten::scatter: one element for each index, along one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import TensorType
from ..idioms.indices import counted_from_the_front, from_the_front, scattered
from ..op import ANY_DTYPE, INDICES, Argument, Op, Tensor, boolean, choice, integer
from ..results import normalized_axis

Array = np.ndarray


def _check(x: TensorType, dim: int, index: TensorType) -> None:
    axis = normalized_axis(dim, x.rank)
    if index.rank != x.rank or any(index.shape[i] > x.shape[i] for i in range(x.rank) if i != axis):
        raise ValueError(f"index {index} does not fit {x} along axis {dim}")


def _gather_result(x: TensorType, dim: int, index: TensorType) -> TensorType:
    _check(x, dim, index)
    return TensorType(x.dtype, index.shape)


def _scatter_result(x: TensorType, dim: int, index: TensorType, src: TensorType) -> TensorType:
    _check(x, dim, index)
    if src != TensorType(x.dtype, index.shape):
        raise ValueError(f"src {src} must have the type of {x} and the shape of {index}")
    return x


def _reduce_result(
    x: TensorType, dim: int, index: TensorType, src: TensorType, reduce: str, include_self: bool
) -> TensorType:
    return _scatter_result(x, dim, index, src)


PLACES: list[Argument] = [integer("dim"), Tensor("index", INDICES)]
gather = Op("aten::gather", args=[Tensor("x", ANY_DTYPE), *PLACES], result=_gather_result)
scatter = Op(
    "aten::scatter", args=[Tensor("x", ANY_DTYPE), *PLACES, Tensor("src", ANY_DTYPE)], result=_scatter_result
)
scatter_add = Op("aten::scatter_add", args=[Tensor("x"), *PLACES, Tensor("src")], result=_scatter_result)
scatter_reduce = Op(
    "aten::scatter_reduce",
    args=[
        Tensor("x"),
        *PLACES,
        Tensor("src"),
        choice("reduce", ("sum", "prod", "amax", "amin")),
        boolean("include_self", True),
    ],
    result=_reduce_result,
)
OPS = [gather, scatter, scatter_add, scatter_reduce]


def _grid(index: Array, dim: int) -> tuple[Array, ...]:
    """``index`` along ``dim``, and along the other axes the place of each of its elements."""
    places: list[Array] = list(np.indices(index.shape, sparse=True))
    places[dim] = index
    return tuple(places)


@gather.reference
def gather_ref(x: Array, dim: int, index: Array) -> Array:
    """result[i][j][k] = x[index[i][j][k]][j][k] for ``dim`` 0. Source: torch.gather."""
    return x[_grid(index, dim)]


@gather.onnx(since=11)
def gather_onnx11(g, x, dim, index):
    return g.op("GatherElements", x, index, axis=dim % len(x.shape))


@gather.decompose
def gather_selected(g, x, dim, index):
    row = g.call("aten::reshape", x, [g.type(x).size])
    part = g.call("aten::index_select", row, 0, _in_a_row(g, g.type(x).shape, dim, index))
    return g.call("aten::reshape", part, list(g.type(index).shape))


@scatter.reference
def scatter_ref(x: Array, dim: int, index: Array, src: Array) -> Array:
    """result[index[i][j][k]][j][k] = src[i][j][k] for ``dim`` 0; the later of two for one place."""
    result = x.copy()
    result[_grid(index, dim)] = src
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
    return _in_rows(g, "aten::index_copy", x, dim, index, src)


@scatter_add.reference
def scatter_add_ref(x: Array, dim: int, index: Array, src: Array) -> Array:
    """As aten::scatter, the elements of ``src`` added to those that are there."""
    result = x.copy()
    np.add.at(result, _grid(index, dim), src)
    return result


@scatter_add.onnx(since=16)  # the attribute reduction
def scatter_add_onnx16(g, x, dim, index, src):
    return scattered(g, "ScatterElements", x, index, src, axis=dim % len(x.shape), reduction="add")


@scatter_add.decompose
def scatter_add_rows(g, x, dim, index, src):
    return _in_rows(g, "aten::index_add", x, dim, index, src)


_UFUNCS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
_NEUTRAL = {"sum": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}
_ONNX = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _neutral(reduce: str, dtype: np.dtype) -> Array:
    value = _NEUTRAL[reduce]
    if dtype.kind in "iu" and not math.isfinite(value):
        limits = np.iinfo(dtype)
        value = limits.min if value < 0 else limits.max
    return np.array(value, dtype)


@scatter_reduce.reference
def scatter_reduce_ref(
    x: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool
) -> Array:
    """As aten::scatter, all elements for one place reduced to one, with or without that of ``x``."""
    result = x.copy()
    if not include_self:
        result[_grid(index, dim)] = _neutral(reduce, x.dtype)
    _UFUNCS[reduce].at(result, _grid(index, dim), src)
    return result


@scatter_reduce.onnx(since=18)  # the reductions max and min
def scatter_reduce_onnx18(g, x, dim, index, src, reduce, include_self):
    axis = dim % len(x.shape)
    if not include_self:
        nothing = g.op("Expand", g.const(_neutral(reduce, x.dtype)), g.ints(index.shape), shape=index.shape)
        x = g.op("ScatterElements", x, index, nothing, axis=axis, shape=x.shape)
    return scattered(g, "ScatterElements", x, index, src, axis=axis, reduction=_ONNX[reduce])


def _in_a_row(g: Any, shape: Sequence[int], dim: int, index: Any) -> Any:
    """For each of ``index`` the place of its element in a tensor of ``shape`` laid in a row."""
    axis = dim % len(shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    places = np.indices(g.type(index).shape, sparse=True)
    rest = sum(
        (place * stride for i, (place, stride) in enumerate(zip(places, strides, strict=True)) if i != axis),
        np.zeros([1] * len(shape), np.int64),
    )
    along = counted_from_the_front(g, g.call("aten::to", index, "int64"), shape[axis])
    along = g.call("aten::mul", along, g.constant(strides[axis], np.int64))
    place = g.call("aten::add", along, g.constant(rest.astype(np.int64)))
    return g.call("aten::reshape", place, [g.type(index).size])


def _in_rows(g: Any, put: str, x: Any, dim: int, index: Any, src: Any) -> Any:
    type_, count = g.type(x), g.type(index).size
    places = _in_a_row(g, type_.shape, dim, index)
    row = g.call("aten::reshape", x, [type_.size])
    row = g.call(put, row, 0, places, g.call("aten::reshape", src, [count]))
    return g.call("aten::reshape", row, list(type_.shape))


for _op in OPS:
    _op.unsupported("caffe", "not written yet for Caffe")
for _op in (scatter_add, scatter_reduce):
    _op.unsupported("tflite", "not written yet for TFLite")
