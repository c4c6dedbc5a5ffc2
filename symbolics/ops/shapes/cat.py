"""aten::cat, tensors of one rank joined along one axis."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensors, integer
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import AlongAxis, Concatenates


def _result(tensors: list[TensorType], dim: int) -> TensorType:
    first = tensors[0]
    axis = normalized_axis(dim, first.rank)
    for other in tensors[1:]:
        fits = other.rank == first.rank and all(
            i == axis or extent == first.shape[i] for i, extent in enumerate(other.shape)
        )
        if other.dtype != first.dtype or not fits:
            raise ValueError(f"cannot join {first} and {other} along axis {dim}")
    total = sum(other.shape[axis] for other in tensors)
    return TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _layout(tensors: list[TensorType], dim: int) -> LayoutRule:
    return any_with(dim="axis") if tensors[0].rank == 4 else SOURCE


cat = Op(
    "aten::cat",
    args=[Tensors("tensors", ANY_DTYPE), integer("dim", 0)],
    result=_result,
    layout=_layout,
    traits=[Concatenates(), AlongAxis()],
)

cat.reference(lambda tensors, dim: np.concatenate(tensors, dim))
cat.onnx(since=4)(lambda g, tensors, dim: g.op("Concat", *tensors, axis=dim % len(tensors[0].shape)))
cat.tflite()(lambda g, tensors, dim: g.op("CONCATENATION", *tensors, axis=dim % len(tensors[0].shape)))


@cat.caffe()
def cat_caffe(g, tensors, dim):
    if len(tensors) == 1:  # OpenCV gives back other memory
        return tensors[0]
    computed = next((value for value in tensors if not value.is_constant), None)
    if computed is None:
        return g.refuse("a Caffe Concat requires a computed operand, but all operands are constants")
    blobs = [
        idioms.caffe_numbers.filled(g, value, computed) if value.is_constant else value for value in tensors
    ]
    return idioms.caffe_numbers.joined(g, blobs, dim % len(blobs[0].shape), g.result_types[0].shape)
