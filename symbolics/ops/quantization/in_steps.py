"""tm::in_steps: selects a fused op or its decomposition; both have quantization parameters.

Calibration writes it where an operator has no integer kernel in TFLite: ``steps`` consists of calls with
integer kernels, with QParams for intermediate results. ``select_decomposition`` selects one of the two; a
saved model has both.
"""

from __future__ import annotations

from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor
from tmconvert.symbolics.results import same_as

in_steps = Op(
    "tm::in_steps",
    args=[Tensor("whole", ANY_DTYPE), Tensor("steps", ANY_DTYPE)],
    result=same_as("whole"),
    layout=ANY,
)

in_steps.reference(lambda whole, steps: whole)
in_steps.onnx(since=7)(lambda g, whole, steps: g.identity(whole))
in_steps.tflite()(lambda g, whole, steps: g.identity(whole))
in_steps.caffe()(lambda g, whole, steps: g.identity(whole))
