"""tm::requantize: the same tensor with other quantization parameters; float values are unchanged.

The QParams are those of its result's node; it is needed where those of the operand differ, or the operand has
users in float.
"""

from __future__ import annotations

import numpy as np

from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import Quantizes

requantize = Op(
    "tm::requantize",
    args=[Tensor("x", ANY_DTYPE)],
    result=same_as("x"),
    layout=ANY,
    traits=[Quantizes()],
)


@requantize.reference
def requantize_ref(x: np.ndarray) -> np.ndarray:
    return x


# Only of models in integers, and of those with a file of parameters (``propagate_qparams``).


@requantize.onnx(since=7)
def requantize_onnx(g, x):
    return g.identity(x)


@requantize.tflite()
def requantize_tflite(g, x):
    return g.identity(x)


@requantize.caffe()
def requantize_caffe(g, x):
    return g.identity(x)
