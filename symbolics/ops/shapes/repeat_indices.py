"""tm::repeat_indices, each index repeated; tm::count_to, a range with data-dependent size."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.symbolic.data_dependent import found
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import INDICES, Op, Tensor
from tmconvert.symbolics.ops.elementwise.to import ONNX_TYPES

Array = np.ndarray

INT64 = np.dtype(np.int64)


def _repeated(repeats: TensorType) -> TensorType:
    return TensorType(INT64, (found(repeats.size),))  # of the most, nothing is known


def _counted(end: TensorType) -> TensorType:
    return TensorType(INT64, (found(64),))


repeat_indices = Op("tm::repeat_indices", args=[Tensor("repeats", INDICES, ranks=(1,))], result=_repeated)
count_to = Op("tm::count_to", args=[Tensor("end", INDICES, ranks=(0,))], result=_counted)
OPS = [repeat_indices, count_to]


@repeat_indices.reference
def repeat_indices_ref(repeats: Array) -> Array:
    """Repeats each index ``repeats`` times, in order. Source: torch.repeat_interleave of one tensor."""
    return np.repeat(np.arange(repeats.size), repeats)


@repeat_indices.onnx(since=11)  # CumSum
def repeat_indices_onnx11(g, repeats):
    """An index of the result belongs to the first repeat that ends after it."""
    (count,), size = g.result_types[0].shape, repeats.shape[0]
    repeats = g.cast(repeats, "int64")
    ends = g.op("CumSum", repeats, g.ints(0))
    total = _sum(g, repeats, 0, (1,), keepdims=1)
    ones = g.op("ConstantOfShape", total, value=np.ones(1, np.int64), shape=(count,), dtype=INT64)
    numbers = g.op("Sub", g.op("CumSum", ones, g.ints(0)), g.ints(1))
    column = g.op("Reshape", numbers, g.ints([-1, 1]), shape=(count, 1))
    over = g.op("Not", g.op("Less", column, ends, shape=(count, size), dtype="bool"))
    flags = g.op("Cast", over, to=ONNX_TYPES["int64"], dtype=INT64)
    return _sum(g, flags, 1, (count,), keepdims=0)


def _sum(g: Any, x: Any, axis: int, shape: Any, keepdims: int) -> Any:
    if g.graph.version < 13:  # the axes are an attribute
        return g.op("ReduceSum", x, axes=[axis], keepdims=keepdims, shape=shape)
    return g.op("ReduceSum", x, g.ints([axis]), keepdims=keepdims, shape=shape)


@count_to.reference
def count_to_ref(end: Array) -> Array:
    """Returns int64 0, 1, ... below ``end``."""
    return np.arange(int(end), dtype=np.int64)


@count_to.onnx(since=11)
def count_to_onnx11(g, end):
    return g.op("Range", g.ints(0), g.cast(end, "int64"), g.ints(1), shape=g.result_types[0].shape)


@count_to.onnx(since=9)
def count_to_onnx9(g, end):
    (count,) = g.result_types[0].shape
    extent = g.op("Reshape", g.cast(end, "int64"), g.ints([1]), shape=(1,))
    ones = g.op("ConstantOfShape", extent, value=np.ones(1, np.int64), shape=(count,), dtype=INT64)
    rows = g.op("NonZero", ones, shape=(1, count), dtype=INT64)
    return g.op("Reshape", rows, g.ints([-1]), shape=(count,))


@count_to.tflite()
def count_to_tflite(g, end):
    start, step = (g.const(np.array(number, INT64)) for number in (0, 1))
    return g.op("RANGE", start, g.cast(end, INT64), step, shape=g.result_types[0].shape)


@repeat_indices.tflite()
def repeat_indices_tflite(g, repeats):
    (count,), size = g.result_types[0].shape, repeats.shape[0]
    ends = g.op("CUMSUM", repeats, g.ints(0), exclusive=False, reverse=False)
    total = g.op("SUM", repeats, g.ints([0]), keep_dims=False, shape=())
    start, step = (g.const(np.array(number, repeats.dtype)) for number in (0, 1))
    numbers = g.op("RANGE", start, total, step, shape=(count,))
    column = idioms.tflite.reshaped(g, numbers, (count, 1))
    over = g.op("GREATER_EQUAL", column, ends, shape=(count, size), dtype=bool)
    return g.op("SUM", g.cast(over, INT64), g.ints([1]), keep_dims=False, shape=(count,))


for _op in OPS:
    _op.unsupported("caffe", "a Caffe net has static sizes only")
