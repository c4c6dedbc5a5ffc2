"""aten::bilinear: a bilinear form of two inputs for each output feature."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import FLOATS, Op, Tensor

Array = np.ndarray


def _result(x: TensorType, input2: TensorType, weight: TensorType, bias: TensorType | None) -> TensorType:
    if not x.rank or not input2.rank or weight.shape[1:] != (x.shape[-1], input2.shape[-1]):
        raise ValueError(f"weight {weight} does not fit {x} and {input2}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias {bias} does not fit {weight}")
    return TensorType(x.dtype, (*broadcast_shapes(x.shape[:-1], input2.shape[:-1]), weight.shape[0]))


bilinear = Op(
    "aten::bilinear",
    args=[
        Tensor("x", FLOATS), Tensor("input2", FLOATS), Tensor("weight", FLOATS, ranks=(3,)),
        Tensor("bias", FLOATS, optional=True),
    ],
    result=_result,
)  # fmt: skip


@bilinear.reference
def bilinear_ref(x: Array, input2: Array, weight: Array, bias: Array | None) -> Array:
    """Shapes: x [..., I], input2 [..., J], weight [O, I, J] -> [..., O]. Source: torch.nn.Bilinear."""
    result = np.einsum("...i,oij,...j->...o", x, weight, input2)
    return (result if bias is None else result + bias).astype(x.dtype)


@bilinear.decompose
def bilinear_products(g, x, input2, weight, bias):
    """[..., I] by [I, O J], as [..., O, J] times [..., 1, J], summed."""
    (outputs, first, second), shape = g.type(weight).shape, g.type(x).shape
    columns = g.call("aten::reshape", g.call("aten::permute", weight, [1, 0, 2]), [first, outputs * second])
    mixed = g.call("aten::reshape", g.call("aten::matmul", x, columns), [*shape[:-1], outputs, second])
    row = g.call("aten::reshape", input2, [*g.type(input2).shape[:-1], 1, second])
    result = g.call("aten::sum", g.call("aten::mul", mixed, row), [-1], False)
    return result if bias is None else g.call("aten::add", result, bias)
