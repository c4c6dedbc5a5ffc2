"""aten::arange of integers, also up to a symbolic size."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import Op, integer


def _result(start: int, end: int, step: int) -> TensorType:
    if step == 0 or (end - start) * step < 0:
        raise ValueError(f"{start} to {end} by {step} is not a valid range")
    return TensorType(np.dtype(np.int64), (-((start - end) // step),))


arange = Op("aten::arange", args=[integer("start"), integer("end"), integer("step", 1)], result=_result)


@arange.reference
def arange_ref(start: int, end: int, step: int) -> np.ndarray:
    """``start``, ``start + step``, ... before ``end``."""
    return np.arange(start, end, step, dtype=np.int64)


@arange.onnx(since=11)
def arange_onnx11(g, start, end, step):
    count = g.result_types[0].shape[0]
    if isinstance(start, int) and start >= 0 and step == 1:
        bounds = (g.ints(value) for value in (start, end, step))
        return g.op("Range", *bounds, shape=(count,), dtype="int64")
    # ONNX Runtime makes a Slice of Gather(x, Range), to which negative bounds mean something else
    bounds = (g.ints(value) for value in (0, count, 1))
    return _spaced(g, g.op("Range", *bounds, shape=(count,), dtype="int64"), start, step)


def _spaced(g, numbers, start, step):
    return g.op("Add", g.op("Mul", numbers, g.ints(step)), g.ints(start))


@arange.onnx(since=9)
def arange_onnx9(g, start, end, step):
    count = g.result_types[0].shape[0]
    ones = g.op("Expand", g.ints([1]), g.ints([count]), shape=(count,), dtype="int64")
    numbers = g.op("NonZero", ones, shape=(1, count), dtype="int64")
    numbers = g.op("Reshape", numbers, g.ints([-1]), shape=(count,))
    return _spaced(g, numbers, start, step)


@arange.onnx(since=1)
def arange_onnx1(g, start, end, step):
    return g.op("Identity", g.ints(range(int(start), int(end), int(step))))


@arange.tflite()
def arange_tflite(g, start, end, step):
    bounds = (g.ints(value) for value in (start, end, step))
    numbers = g.op("RANGE", *bounds, shape=g.result_types[0].shape)
    return g.cast(numbers, g.result_types[0].dtype)


arange.unsupported("caffe", "this target has static shapes only, so that the range would be a constant")
