"""aten::batch_norm in inference: (x - running_mean) / sqrt(running_var + eps) * weight + bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.layouts import SOURCE
from tmconvert.symbolics.op import FLOATS, Op, Tensor, number
from tmconvert.symbolics.traits import Spatial

Array = np.ndarray


def _result(
    x: TensorType, weight: TensorType | None, bias: TensorType | None, running_mean: TensorType,
    running_var: TensorType, eps: float,
) -> TensorType:  # fmt: skip
    if x.rank < 2:
        raise ValueError(f"x {x} has no channel axis")
    for parameter in (weight, bias, running_mean, running_var):
        if parameter is not None and parameter.shape != (x.shape[1],):
            raise ValueError(f"a parameter {parameter} does not fit {x.shape[1]} channels")
    return x


batch_norm = Op(
    "aten::batch_norm",
    args=[
        Tensor("x", FLOATS),
        Tensor("weight", FLOATS, optional=True),
        Tensor("bias", FLOATS, optional=True),
        Tensor("running_mean", FLOATS),
        Tensor("running_var", FLOATS),
        number("eps", 1e-5),
    ],
    result=_result,
    layout=SOURCE,  # decomposed before a layout is chosen
    traits=[Spatial()],
)


@batch_norm.reference
def batch_norm_ref(
    x: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, eps: float
) -> Array:
    """Per-channel affine map of x [N, C, ...] by parameters [C]. Source: torch.nn.functional.batch_norm."""
    scale, shift = affine(weight, bias, running_mean, running_var, eps)
    broadcast = (slice(None), *(None,) * (x.ndim - 2))
    return x * scale.astype(x.dtype)[broadcast] + shift.astype(x.dtype)[broadcast]


def affine(
    weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, eps: float
) -> tuple[Array, Array]:
    """Returns (scale, shift) in float64, shapes [C], such that y = scale x + shift."""
    scale = 1 / np.sqrt(running_var.astype(np.float64) + eps)
    if weight is not None:
        scale = scale * weight
    shift = -running_mean * scale
    return scale, shift if bias is None else shift + bias


@batch_norm.decompose
def batch_norm_affine(g, x, weight, bias, running_mean, running_var, eps):
    type_ = g.type(x)
    parameters: list[Any] = [
        None if value is None else g.known(value) for value in (weight, bias, running_mean, running_var)
    ]
    present = [value is not None for value in (weight, bias, running_mean, running_var)]
    column = [1, type_.shape[1], *[1] * (type_.rank - 2)]
    if [value is not None for value in parameters] == present:
        gamma, beta, mean, variance = parameters
        scale, shift = affine(gamma, beta, mean, variance, eps)
        scale, shift = (g.constant(value.astype(type_.dtype).reshape(column)) for value in (scale, shift))
        return g.call("aten::add", g.call("aten::mul", x, scale), shift)
    scale = g.call("aten::rsqrt", g.call("aten::add", running_var, g.constant(eps, type_.dtype)))
    if weight is not None:
        scale = g.call("aten::mul", scale, weight)
    centred = g.call("aten::sub", x, g.call("aten::reshape", running_mean, column))
    result = g.call("aten::mul", centred, g.call("aten::reshape", scale, column))
    return result if bias is None else g.call("aten::add", result, g.call("aten::reshape", bias, column))


@batch_norm.onnx(since=7)
def batch_norm_onnx7(g, x, weight, bias, running_mean, running_var, eps):
    channels = x.shape[1]
    weight = weight or g.const(np.ones(channels, x.dtype))
    bias = bias or g.const(np.zeros(channels, x.dtype))
    return g.op("BatchNormalization", x, weight, bias, running_mean, running_var, epsilon=float(eps))
