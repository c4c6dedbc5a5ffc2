"""tm::sizes: a vector of sizes as data."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.emitter import SIZES
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import Op, integers


def _result(values: list[int]) -> TensorType:
    return TensorType(np.dtype(np.int64), (len(values),))


sizes = Op(SIZES, args=[integers("values")], result=_result)


sizes.reference(lambda values: np.array(values, np.int64))
sizes.onnx(since=1)(lambda g, values: g.op("Identity", g.ints(values), shape=(len(values),)))


@sizes.tflite()
def sizes_tflite(g, values):
    vector = g.op(
        "RESHAPE", g.ints(values), g.ints([len(values)]), new_shape=[len(values)], shape=(len(values),)
    )
    return g.cast(vector, g.result_types[0].dtype)


sizes.unsupported("caffe", "this target has static shapes only, so that sizes would be constants")
