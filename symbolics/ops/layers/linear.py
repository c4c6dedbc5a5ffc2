"""aten::linear, x W^T + b over the last axis."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.traits import Weights

Array = np.ndarray


def _result(x: TensorType, weight: TensorType, bias: TensorType | None) -> TensorType:
    if x.rank < 1 or weight.rank != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"x {x} does not fit weight {weight}")
    if bias is not None and bias.shape != (weight.shape[0],):
        raise ValueError(f"bias {bias} does not fit weight {weight}")
    return TensorType(x.dtype, (*x.shape[:-1], weight.shape[0]))


linear = Op(
    "aten::linear",
    args=[Tensor("x", FLOATS), Tensor("weight", FLOATS), Tensor("bias", FLOATS, optional=True)],
    result=_result,
    traits=[Weights(spatial=0)],
)


@linear.reference
def linear_ref(x: Array, weight: Array, bias: Array | None) -> Array:
    """Shapes: x [..., I], weight [O, I], bias [O] -> [..., O]. Source: torch.nn.functional.linear."""
    result = x @ weight.T
    return result if bias is None else result + bias


@linear.onnx(since=7)
def linear_onnx7(g, x, weight, bias):
    if len(x.shape) == 2 and bias is not None:
        return g.op("Gemm", x, weight, bias, transB=1)
    if weight.is_constant:
        columns = g.const(weight.data.T, name=f"{weight.name}_T")
    else:
        columns = g.op("Transpose", weight, perm=[1, 0], shape=weight.shape[::-1])
    shape = (*x.shape[:-1], weight.shape[0])
    product = g.op("MatMul", x, columns, shape=shape)
    return product if bias is None else g.op("Add", product, bias)


@linear.tflite()
def linear_tflite(g, x, weight, bias):
    return g.op("FULLY_CONNECTED", x, weight, bias, keep_num_dims=len(x.shape) != 2)


@linear.caffe()
def linear_caffe(g, x, weight, bias):
    if not weight.is_constant or (bias is not None and not bias.is_constant):
        g.refuse("a Caffe InnerProduct stores its weights in the model: they cannot be computed")
    return idioms.caffe.product_along_last(g, x, weight, bias)
