"""ELU and its relatives: linear above zero, exponential below."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor, number
from tmconvert.symbolics.results import same_as

Array = np.ndarray

# of SELU. Source: torch.nn.SELU, ONNX Selu-6
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805

elu = Op(
    "aten::elu",
    args=[Tensor("x", FLOATS), number("alpha", 1), number("scale", 1), number("input_scale", 1)],
    result=same_as("x"),
    layout=ANY,
)


@elu.reference
def elu_ref(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """scale x above zero, scale alpha (exp(input_scale x) - 1) below."""
    below = alpha * np.expm1(np.minimum(x, 0) * np.array(input_scale, x.dtype))
    return (scale * np.where(x > 0, x, below)).astype(x.dtype)


@elu.onnx(since=6)
def elu_onnx6(g, x, alpha, scale, input_scale):
    if input_scale == 1:
        y = g.op("Elu", x, alpha=float(alpha))
    else:
        below = g.op("Mul", g.op("Relu", g.op("Neg", x)), g.const(-input_scale))
        y = g.op("Add", g.op("Relu", x), g.op("Elu", below, alpha=float(alpha)))
    return y if scale == 1 else g.op("Mul", y, g.const(scale))


@formula(elu)
def elu_exp(x: Term, alpha: float, scale: float, input_scale: float) -> Term:
    below = x.clamp(max=0)
    curve = ((below if input_scale == 1 else below * input_scale).exp() - 1) * alpha
    y = x.relu() + curve
    return y if scale == 1 else y * scale


@elu.tflite()
def elu_tflite(g, x, alpha, scale, input_scale):
    if (alpha, scale, input_scale) == (1, 1, 1):
        return g.op("ELU", x)
    curve = g.op("ELU", g.op("MUL", g.op("MINIMUM", x, g.const(0)), g.const(input_scale)))
    y = g.op("ADD", g.op("RELU", x), g.op("MUL", curve, g.const(alpha)))
    return y if scale == 1 else g.op("MUL", y, g.const(scale))


selu = Op("aten::selu", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY)
selu.reference(lambda x: elu_ref(x, SELU_ALPHA, SELU_SCALE, 1))
selu.onnx(since=6)(lambda g, x: g.op("Selu", x, alpha=SELU_ALPHA, gamma=SELU_SCALE))


formula(selu)(lambda x: x.elu(alpha=SELU_ALPHA, scale=SELU_SCALE))


def _celu_result(x: TensorType, alpha: float) -> TensorType:
    if alpha == 0:
        raise ValueError("alpha must not be zero")
    return x


celu = Op("aten::celu", args=[Tensor("x", FLOATS), number("alpha", 1)], result=_celu_result, layout=ANY)
celu.reference(lambda x, alpha: elu_ref(x, alpha, 1, 1 / alpha))


formula(celu)(lambda x, alpha: x.elu(alpha=alpha, input_scale=1 / alpha))


OPS = [elu, selu, celu]
