"""aten::pow, x to the power of exponent."""

from __future__ import annotations

import numpy as np

from ..layouts import ANY
from ..op import FLOATS, Op, Tensor
from ..results import broadcast

power = Op(
    "aten::pow",
    args=[Tensor("x", FLOATS), Tensor("exponent", FLOATS)],
    result=broadcast("x", "exponent"),
    layout=ANY,
)


@power.reference
def pow_ref(x: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """NaN for a negative number to a power that is not whole."""
    return np.power(x, exponent)


@power.onnx(since=7)
def pow_onnx7(g, x, exponent):
    return g.op("Pow", x, exponent)


@power.tflite()
def pow_tflite(g, x, exponent):
    return g.op("POW", x, exponent)


@power.caffe()
def pow_caffe(g, x, exponent):
    if not exponent.is_constant or exponent.data.size != 1 or len(exponent.shape) > len(x.shape):
        g.refuse("Caffe's Power has one constant exponent")
    return g.op("Power", x, power=float(exponent.data.reshape(-1)[0]))
