"""tm::requantize: the same tensor with other quantization parameters; float values are unchanged.

The QParams are those of its result's node; it is needed where those of the operand differ, or the operand has
users in float.
"""

from __future__ import annotations

from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import Quantizes

requantize = Op(
    "tm::requantize", args=[Tensor("x", ANY_DTYPE)], result=same_as("x"), layout=ANY, traits=[Quantizes()]
)

requantize.reference(lambda x: x)


# Only of models in integers, and of those with a file of parameters (``propagate_qparams``).


requantize.onnx(since=7)(lambda g, x: g.identity(x))
requantize.tflite()(lambda g, x: g.identity(x))
requantize.caffe()(lambda g, x: g.identity(x))
