"""aten::index_select, index_copy, index_add and index_fill: slices along one axis, selected by indices.

They are what other indexing comes down to. An index from -n to -1 counts from the end of n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.indices import counted_from_the_front, from_the_front, scattered
from tmconvert.symbolics.idioms.tensor_scatter import slices_written
from tmconvert.symbolics.idioms.tflite_scattering import copied, counted
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import ANY_DTYPE, INDICES, Argument, Op, Tensor, integer, number
from tmconvert.symbolics.ops.elementwise.binary import added
from tmconvert.symbolics.results import around, fits, normalized_axis
from tmconvert.symbolics.traits import IndexesAxis, KeepsQparams, SelectsElements

Array = np.ndarray


def _select_result(x: TensorType, dim: int, index: TensorType) -> TensorType:
    axis = normalized_axis(dim, x.rank)
    if index.rank != 1:
        raise ValueError(f"index {index} must have rank 1")
    return TensorType(x.dtype, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _select_layout(x: TensorType, dim: int, index: TensorType) -> LayoutRule:
    return any_with(dim="axis") if x.rank == 4 else SOURCE


def copy_result(
    x: TensorType, dim: int, index: TensorType, source: TensorType, alpha: int | float = 1
) -> TensorType:
    if source != _select_result(x, dim, index):
        raise ValueError(f"source {source} does not fit {x} at {index} along axis {dim}")
    if not fits(alpha, x.dtype):
        raise ValueError(f"alpha {alpha} does not have the type of {x}")
    return x


def _fill_result(x: TensorType, dim: int, index: TensorType, value: TensorType) -> TensorType:
    _select_result(x, dim, index)
    if value != TensorType(x.dtype, ()):
        raise TypeError(f"value {value} does not have the type of {x}")
    return x


SELECTED: list[Argument] = [integer("dim"), Tensor("index", INDICES)]
index_select = Op(
    "aten::index_select",
    args=[Tensor("x", ANY_DTYPE), *SELECTED],
    result=_select_result,
    layout=_select_layout,
    traits=[KeepsQparams(), SelectsElements(), IndexesAxis()],
)
index_copy = Op(
    "aten::index_copy",
    args=[Tensor("x", ANY_DTYPE), *SELECTED, Tensor("source", ANY_DTYPE)],
    result=copy_result,
)
index_add = Op(
    "aten::index_add",
    args=[Tensor("x", ANY_DTYPE), *SELECTED, Tensor("source", ANY_DTYPE), number("alpha", 1)],
    result=copy_result,
)
index_fill = Op(
    "aten::index_fill",
    args=[Tensor("x", ANY_DTYPE), *SELECTED, Tensor("value", ANY_DTYPE)],
    result=_fill_result,
)
OPS = [index_select, index_copy, index_add, index_fill]


index_select.reference(lambda x, dim, index: x.take(index, dim))


@index_select.onnx(since=11)  # takes negative indices
def index_select_onnx11(g, x, dim, index):
    return g.op("Gather", x, index, axis=dim % len(x.shape))


@index_select.onnx(since=1)
def index_select_onnx1(g, x, dim, index):
    axis = dim % len(x.shape)
    return g.op("Gather", x, from_the_front(g, index, x.shape[axis]), axis=axis)


@index_select.tflite()
def index_select_tflite(g, x, dim, index):
    axis = dim % len(x.shape)
    return g.op("GATHER", x, counted(g, index, x.shape[axis]), axis=axis)


@index_copy.reference
def index_copy_ref(x: Array, dim: int, index: Array, source: Array) -> Array:
    """Writes ``source`` at ``index`` along ``dim``; for duplicates the last one wins."""
    result = np.moveaxis(x.copy(), dim, 0)
    result[index] = np.moveaxis(source, dim, 0)
    return np.ascontiguousarray(np.moveaxis(result, 0, dim)).reshape(x.shape)


@index_copy.onnx(since=24)
def index_copy_onnx24(g, x, dim, index, source):
    made = slices_written(g, x, dim % len(x.shape), index, source)
    return _rows_scattered(g, x, dim, index, source) if made is None else made


index_copy.onnx(since=11)(lambda g, x, dim, index, source: _rows_scattered(g, x, dim, index, source))


@index_copy.onnx(since=9)
def index_copy_onnx9(g, x, dim, index, source):
    axis = dim % len(x.shape)
    places = [1] * len(x.shape)
    places[axis] = index.shape[0]
    index = from_the_front(g, index, x.shape[axis])
    index = g.op("Reshape", index, g.ints(places), shape=places)
    index = g.op("Expand", index, g.ints(source.shape), shape=source.shape)
    return g.op("Scatter", x, index, source, axis=axis, shape=x.shape)


@index_copy.decompose
def index_copy_selected(g, x, dim, index, source):
    """Selects each slice from ``x`` or ``source``."""
    count, extent = g.type(index).shape[0], g.type(x).shape[dim]
    known = g.known(index)
    if not count or not extent:
        return x
    if known is not None:
        choice = np.arange(extent)
        choice[known] = extent + np.arange(count)
        choice = g.constant(choice)
    else:
        here = _hits(g, index, extent)
        # one more than the number of the last part for each place
        numbers = g.constant(np.arange(1, count + 1).reshape(-1, 1))
        last = g.call("aten::amax", g.call("aten::mul", here, numbers), [0])
        places = g.constant(np.arange(extent))
        beyond = g.call("aten::sub", g.call("aten::add", last, g.constant(extent - 1)), places)
        beyond = g.call("aten::mul", g.call("aten::amax", here, [0]), beyond)
        choice = g.call("aten::add", places, beyond)
    return g.call("aten::index_select", g.call("aten::cat", [x, source], dim), dim, choice)


index_copy.tflite()(lambda g, x, dim, index, source: copied(g, x, dim % len(x.shape), index, source))


@index_add.reference
def index_add_ref(x: Array, dim: int, index: Array, source: Array, alpha: int | float) -> Array:
    """Adds ``source`` times ``alpha`` at ``index`` along ``dim``; duplicates accumulate."""
    result = np.moveaxis(x.copy(), dim, 0)
    np.add.at(result, index, np.moveaxis(source * np.array(alpha, x.dtype), dim, 0))
    return np.ascontiguousarray(np.moveaxis(result, 0, dim)).reshape(x.shape)


@index_add.onnx(since=16)
def index_add_onnx16(g, x, dim, index, source, alpha):
    if alpha != 1:
        source = g.op("Mul", source, g.const(alpha))
    return _rows_scattered(g, x, dim, index, source, reduction="add")


@index_add.decompose
def index_add_scattered(g, x, dim, index, source, alpha):
    """Repeats the indices along the other axes, for aten::scatter_add."""
    shape, dtype = list(g.type(source).shape), g.type(x).dtype
    column = [1] * len(shape)
    column[dim] = shape[dim]
    if alpha != 1:
        source = g.call("aten::mul", source, g.constant(alpha, dtype))
    places = g.call("aten::reshape", index, column)
    return g.call("aten::scatter_add", x, dim, g.call("aten::expand", places, shape), source)


@index_fill.reference
def index_fill_ref(x: Array, dim: int, index: Array, value: Array) -> Array:
    """Fills the slices ``index`` along ``dim`` with a number."""
    result = x.copy()
    np.moveaxis(result, dim, 0)[index] = value
    return result


@index_fill.decompose
def index_fill_copied(g, x, dim, index, value):
    part = list(g.type(x).shape)
    part[dim] = g.type(index).shape[0]
    return g.call("aten::index_copy", x, dim, index, g.call("aten::expand", value, part))


def _hits(g: Any, index: Any, extent: int) -> Any:
    """int64 [indices, extent]: one-hot rows of the index."""
    return g.call("aten::one_hot", counted_from_the_front(g, index, extent), extent)


def _rows_scattered(g: Any, x: Any, dim: int, index: Any, source: Any, reduction: str | None = None) -> Any:
    """Emits ScatterND, which writes along the first axis."""
    axis = dim % len(x.shape)
    order = [axis, *(i for i in range(len(x.shape)) if i != axis)]
    places = (index.shape[0], 1)
    index = g.op("Reshape", index, g.ints(places), shape=places)
    if index.dtype != np.int64:
        index = g.op("Cast", index, to=7, dtype="int64")
    if axis == 0:
        return _scatter_nd(g, x, index, source, reduction)
    moved = [
        g.op("Transpose", value, perm=order, shape=[value.shape[i] for i in order]) for value in (x, source)
    ]
    rows = _scatter_nd(g, moved[0], index, moved[1], reduction)
    return g.op("Transpose", rows, perm=[order.index(i) for i in range(len(order))], shape=x.shape)


def _scatter_nd(g: Any, x: Any, index: Any, source: Any, reduction: str | None) -> Any:
    if reduction is None:
        return g.op("ScatterND", x, index, source, shape=x.shape)
    return scattered(g, "ScatterND", x, index, source, reduction=reduction)


@index_select.caffe()
def index_select_caffe(g, x, dim, index):
    """Slices or a matrix for a constant index, else layers that gather rows."""
    axis = dim % len(x.shape)
    outer, extent, inner = around(x.shape, axis, axis + 1)
    count = index.shape[0]
    if not count or not extent:
        g.refuse("a Caffe blob cannot be empty")
    if index.is_constant:
        return idioms.caffe_numbers.parts_at(g, x, axis, index.data)
    below = idioms.caffe_numbers.step(g, g.op("Power", index, scale=-1.0))
    places = g.op("Eltwise", index, below, operation="SUM", coeff=[1.0, float(extent)])
    if outer > 1:
        rows = idioms.caffe.spread(g, places, (outer, count))
        places = added(g, rows, g.const(np.arange(outer, dtype=np.float32).reshape(-1, 1) * extent))
        places = idioms.caffe.reshaped(g, places, [outer * count])
    made = idioms.caffe_numbers.rows_at(g, idioms.caffe.reshaped(g, x, (outer * extent, inner)), places)
    return idioms.caffe.reshaped(g, made, g.result_types[0].shape)
