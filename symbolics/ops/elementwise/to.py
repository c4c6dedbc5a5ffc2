"""aten::to: element type conversion."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import ANY_DTYPE, WIDE_UNSIGNED, Op, Tensor, choice
from tmconvert.symbolics.traits import Casts, SameElements

# TensorProto.DataType of ONNX
ONNX_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint16": 4,
    "uint32": 12,
    "uint64": 13,
}
_DTYPES = (*ANY_DTYPE, *WIDE_UNSIGNED)


def _result(x: TensorType, dtype: str) -> TensorType:
    return TensorType(np.dtype(dtype), x.shape)


to = Op(
    "aten::to",
    args=[Tensor("x", _DTYPES), choice("dtype", _DTYPES)],
    result=_result,
    layout=ANY,
    traits=[Casts(), SameElements()],
)


@to.reference
def to_ref(x: np.ndarray, dtype: str) -> np.ndarray:
    """Floats are truncated when converted to integers."""
    return x.astype(dtype)


to.onnx(since=6)(lambda g, x, dtype: g.op("Cast", x, to=ONNX_TYPES[dtype], dtype=dtype))


@to.tflite()
def to_tflite(g, x, dtype):
    for name in (x.dtype.name, dtype):
        if name in WIDE_UNSIGNED:
            g.refuse(f"tensors of {name} are not written to TFLite")
    return g.op("CAST", x, dtype=dtype)


@to.caffe()  # every blob is float32, which holds what other types do, up to 2^24
def to_caffe(g, x, dtype):
    wanted = np.dtype(dtype)
    if dtype in WIDE_UNSIGNED:
        g.refuse(f"Caffe blobs are float32, which does not wrap around as {dtype} does")
    if dtype == "bool" and x.dtype != np.bool_:
        return idioms.caffe_numbers.step(g, g.op("AbsVal", x))
    if wanted.kind in "iu" and x.dtype.kind == "f":
        falling = idioms.caffe_numbers.floored(g, g.op("ReLU", g.op("Power", x, scale=-1.0)))
        rising = idioms.caffe_numbers.floored(g, g.op("ReLU", x))
        return g.op("Eltwise", rising, falling, operation="SUM", coeff=[1.0, -1.0])
    if wanted.kind in "iu" and not np.can_cast(x.dtype, wanted) and wanted.itemsize < 4:
        g.refuse(f"Caffe blobs are float32, which does not wrap around as {dtype} does")
    if dtype == "float16" and x.dtype.kind == "f":
        return idioms.caffe_numbers.shortened(g, x)
    return g.op("Power", x)
