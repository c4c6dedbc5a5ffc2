"""aten::reshape to a static shape; flatten, squeeze and unsqueeze are converted to it."""

from __future__ import annotations

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integers
from tmconvert.symbolics.traits import Identity, KeepsQparams, Reshaped, SameElements, SelectsElements, View


def _result(x: TensorType, shape: list[int]) -> TensorType:
    result = TensorType(x.dtype, tuple(shape))
    if any(extent < 0 for extent in shape) or result.size != x.size:
        raise ValueError(f"{x} cannot be reshaped to {shape}")
    return result


reshape = Op(
    "aten::reshape",
    args=[Tensor("x", ANY_DTYPE), integers("shape")],
    result=_result,
    traits=[
        View(lambda rank, shape: [Reshaped(shape)]),
        *(SameElements(), KeepsQparams(), SelectsElements()),
        Identity(lambda shape: True),  # of the same type
    ],
)

reshape.reference(lambda x, shape: x.reshape(shape))
reshape.onnx(since=5)(lambda g, x, shape: g.op("Reshape", x, g.ints(shape)))
reshape.tflite()(lambda g, x, shape: idioms.tflite.reshaped(g, x, shape))
reshape.caffe()(lambda g, x, shape: idioms.caffe.reshaped(g, x, shape))
