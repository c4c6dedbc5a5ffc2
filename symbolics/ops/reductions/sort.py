"""aten::sort and aten::topk along one axis: sorted elements and their indices.

Equal elements keep their order; NaN counts as the largest. Indices are int32, the index type of our sources
and of TFLite; ATen's are int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import NUMBERS, Op, Tensor, boolean, integer
from tmconvert.symbolics.ops.elementwise.to import ONNX_TYPES
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import RanksElements

Array = np.ndarray

INT32 = np.dtype(np.int32)


def _sorted(x: TensorType, dim: int, descending: bool, stable: bool) -> list[TensorType]:
    normalized_axis(dim, x.rank)
    return [x, TensorType(INT32, x.shape)]


def _top(x: TensorType, k: int, dim: int, largest: bool, sorted: bool) -> list[TensorType]:
    axis = normalized_axis(dim, x.rank)
    if k < 0 or not (data_symbols(x.shape[axis]) or k <= x.shape[axis]):
        raise ValueError(f"topk along axis {dim} of {x} requires at least {k} elements")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [TensorType(x.dtype, shape), TensorType(INT32, shape)]


sort = Op(
    "aten::sort",
    args=[Tensor("x", NUMBERS), integer("dim", -1), boolean("descending", False), boolean("stable", False)],
    result=_sorted,
    traits=[RanksElements()],
)
topk = Op(
    "aten::topk",
    args=[
        Tensor("x", NUMBERS), integer("k"), integer("dim", -1), boolean("largest", True),
        boolean("sorted", True),
    ],
    result=_top,
    traits=[RanksElements()],
)  # fmt: skip
OPS = [sort, topk]


def order_of(x: Array, dim: int, descending: bool) -> Array:
    """The indices that sort ``x`` along ``dim``."""
    if not descending:
        return np.argsort(x, dim, kind="stable").astype(INT32)
    after = np.argsort(np.flip(x, dim), dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - after, dim).astype(INT32)


@sort.reference
def sort_ref(x: Array, dim: int, descending: bool, stable: bool) -> list[Array]:
    order = order_of(x, dim, descending)
    return [np.take_along_axis(x, order, dim), order]


@topk.reference
def topk_ref(x: Array, k: int, dim: int, largest: bool, sorted: bool) -> list[Array]:
    """Always sorted, also without ``sorted``."""
    order = np.take(order_of(x, dim, largest), range(k), dim)
    return [np.take_along_axis(x, order, dim), order]


def _top_k(g: Any, x: Any, dim: int, count: int, *inputs: Any, **attributes: Any) -> list[Any]:
    axis = dim % len(x.shape)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    values, indices = g.op("TopK", x, *inputs, axis=axis, shapes=[shape, shape], **attributes)
    indices.dtype = np.dtype(np.int64)
    return [values, g.op("Cast", indices, to=ONNX_TYPES["int32"], dtype=INT32)]


def _largest_of(
    g: Any, x: Any, dim: int, count: int, largest: bool, *inputs: Any, **attributes: Any
) -> list[Any]:
    """Emits a TopK operator that supports largest elements only."""
    dtype = x.dtype
    if dtype.kind == "u":  # whose order Neg would not turn round
        x = g.op("Cast", x, to=ONNX_TYPES["int16"], dtype=np.int16)
    source = x if largest else g.op("Neg", x)
    values, indices = _top_k(g, source, dim, count, *inputs, **attributes)
    values = values if largest else g.op("Neg", values)
    if dtype != x.dtype:
        values = g.op("Cast", values, to=ONNX_TYPES[dtype.name], dtype=dtype)
    return [values, indices]


@topk.onnx(since=11)  # both directions, all numbers
def topk_onnx11(g, x, k, dim, largest, sorted):
    return _top_k(g, x, dim, k, g.ints([k]), largest=int(largest), sorted=1)


@topk.onnx(since=10)  # k is an input
def topk_onnx10(g, x, k, dim, largest, sorted):
    return _largest_of(g, x, dim, k, largest, g.ints([k]))


@topk.onnx(since=1)
def topk_onnx1(g, x, k, dim, largest, sorted):
    return _largest_of(g, x, dim, k, largest, k=k)


@sort.onnx(since=11)
def sort_onnx11(g, x, dim, descending, stable):
    return topk_onnx11(g, x, x.shape[dim], dim, descending, True)


@sort.onnx(since=10)
def sort_onnx10(g, x, dim, descending, stable):
    return topk_onnx10(g, x, x.shape[dim], dim, descending, True)


@sort.onnx(since=1)
def sort_onnx1(g, x, dim, descending, stable):
    return topk_onnx1(g, x, x.shape[dim], dim, descending, True)


@topk.tflite()
def topk_tflite(g, x, k, dim, largest, sorted):
    """TOPK_V2 supports the last axis and largest elements only; ties are in order of index."""
    axis, last = dim % len(x.shape), len(x.shape) - 1
    order = list(range(last + 1))
    order[axis], order[last] = last, axis
    if axis != last:
        x = idioms.tflite.transposed(g, x, order)
    source = x if largest else _mirrored(g, x)
    shape = (*x.shape[:-1], k)
    values, indices = g.op("TOPK_V2", source, g.ints(k), shapes=[shape, shape])
    indices.dtype = INT32
    values = values if largest else _mirrored(g, values)
    return (
        [values, indices]
        if axis == last
        else [idioms.tflite.transposed(g, y, order) for y in (values, indices)]
    )


def _mirrored(g: Any, x: Any) -> Any:
    """Returns ``x`` with reversed order, exactly: negated floats, complemented integers."""
    if x.dtype.kind == "f":
        return g.op("NEG", x)
    highest = np.iinfo(x.dtype).max if x.dtype.kind == "u" else -1
    return g.op("SUB", g.const(np.array(highest, x.dtype)), x)


sort.tflite()(lambda g, x, dim, descending, stable: topk_tflite(g, x, x.shape[dim], dim, descending, True))


@topk.caffe()
def topk_caffe(g, x, k, dim, largest, sorted):
    axis = dim % len(x.shape)
    if k == 0:
        g.refuse("a Caffe blob cannot be empty")
    source = x if largest else g.op("Power", x, scale=-1.0)
    values = idioms.caffe_numbers.largest(g, source, axis, k)
    indices = idioms.caffe_numbers.largest_at(g, source, axis, k)
    return [values if largest else g.op("Power", values, scale=-1.0), indices]


sort.caffe()(lambda g, x, dim, descending, stable: topk_caffe(g, x, x.shape[dim], dim, descending, True))
