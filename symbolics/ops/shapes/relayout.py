"""tm::relayout: the same tensor in another layout; values are unchanged."""

from __future__ import annotations

from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW, LayoutRule
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, choice
from tmconvert.symbolics.results import same_as

relayout = Op(
    "tm::relayout",
    args=[Tensor("x", ANY_DTYPE), choice("to", ["nhwc", "source"])],
    result=same_as("x"),
    layout=LayoutRule("relayout"),
)

relayout.reference(lambda x, to: x)


@relayout.tflite()
def relayout_tflite(g, x, to):
    order = NCHW_TO_NHWC if to == "nhwc" else NHWC_TO_NCHW
    shape = [x.shape[axis] for axis in order]
    moved = [axis for axis in order if x.shape[axis] != 1]
    if moved == sorted(moved):  # only axes of extent 1 move: the bytes stay where they are
        return idioms.tflite.reshaped(g, x, shape)
    return idioms.tflite.transposed(g, x, order)


for _target in ("onnx", "caffe"):
    relayout.unsupported(_target, "layouts are assigned for TFLite only")
