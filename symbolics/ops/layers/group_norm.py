"""aten::group_norm and aten::instance_norm: normalization of groups of channels, and of each channel.

(x - mean) / sqrt(variance + eps) * weight + bias, with the variance of the population.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.symbolic.clamps import may_be_empty
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.normalizing import precise, scaled, standardized
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer, number
from tmconvert.symbolics.ops.layers.layer_norm import normalized
from tmconvert.symbolics.traits import IntegerSteps, Spatial

Array = np.ndarray
_AXES_AS_INPUT = 18  # the opset from which on those of ReduceMean are


def _result(x: TensorType, groups: int, *parameters: TensorType | None) -> TensorType:
    if x.rank < 2 or groups < 1 or x.shape[1] % groups:
        raise ValueError(f"the channels of {x} are not divisible into {groups} groups")
    for parameter in parameters:
        if parameter is not None and parameter.shape != (x.shape[1],):
            raise ValueError(
                f"weight and bias need an element for each of {x.shape[1]} channels, got {parameter}"
            )
    return x


def _instance_result(
    x: TensorType, weight: TensorType | None, bias: TensorType | None, eps: float
) -> TensorType:
    if x.rank < 3:
        raise ValueError(f"expected at least one spatial dimension, got {x}")
    return _result(x, 1, weight, bias)


group_norm = Op(
    "aten::group_norm",
    args=[
        Tensor("x", FLOATS), integer("num_groups"), Tensor("weight", FLOATS, optional=True),
        Tensor("bias", FLOATS, optional=True), number("eps", 1e-5),
    ],
    result=lambda x, num_groups, weight, bias, eps: _result(x, num_groups, weight, bias),
    traits=[Spatial(), IntegerSteps(lambda g, **given: idioms.integer_steps.group_norm(g, **given))],
)  # fmt: skip
instance_norm = Op(
    "aten::instance_norm",
    args=[
        Tensor("x", FLOATS), Tensor("weight", FLOATS, optional=True), Tensor("bias", FLOATS, optional=True),
        number("eps", 1e-5),
    ],
    result=_instance_result,
    traits=[Spatial(), IntegerSteps(lambda g, **given: idioms.integer_steps.instance_norm(g, **given))],
)  # fmt: skip
OPS = [group_norm, instance_norm]


@group_norm.reference
def group_norm_ref(x: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Shapes: x [N, C, ...], weight and bias [C]. Source: torch.nn.functional.group_norm."""
    groups = x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    result = normalized(groups, (2,), eps).reshape(x.shape)
    column = (-1, *[1] * (x.ndim - 2))
    result = result if weight is None else result * weight.reshape(column)
    return (result if bias is None else result + bias.reshape(column)).astype(x.dtype)


@instance_norm.reference
def instance_norm_ref(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Shapes: x [N, C, ...], weight and bias [C]. Source: torch.nn.functional.instance_norm."""
    return group_norm_ref(x, x.shape[1], weight, bias, eps)


@group_norm.onnx(since=21)  # before, weight and bias were per group
def group_norm_onnx21(g, x, num_groups, weight, bias, eps):
    weight = weight or g.const(np.ones(x.shape[1], x.dtype))
    bias = bias or g.const(np.zeros(x.shape[1], x.dtype))
    return g.op("GroupNormalization", x, weight, bias, num_groups=num_groups, epsilon=float(eps))


@instance_norm.onnx(since=6)
def instance_norm_onnx6(g, x, weight, bias, eps):
    weight = weight or g.const(np.ones(x.shape[1], x.dtype))
    bias = bias or g.const(np.zeros(x.shape[1], x.dtype))
    if any(map(may_be_empty, x.shape)):  # ONNX Runtime 1.32 crashes on empty channels
        return _instance_norm_of_operators(g, x, weight, bias, eps)
    return g.op("InstanceNormalization", x, weight, bias, epsilon=float(eps))


def _instance_norm_of_operators(g, x, weight, bias, eps):
    axes, column = list(range(2, len(x.shape))), (*x.shape[:2], *[1] * (len(x.shape) - 2))

    def mean(value):
        if int(g.graph.version) >= _AXES_AS_INPUT:
            return g.op("ReduceMean", value, g.ints(axes), keepdims=1, shape=column)
        return g.op("ReduceMean", value, axes=axes, keepdims=1, shape=column)

    centred = g.op("Sub", x, mean(x), shape=x.shape)
    variance = g.op("Add", mean(g.op("Mul", centred, centred)), g.const(np.array(eps, x.dtype)))
    result = g.op("Div", centred, g.op("Sqrt", variance), shape=x.shape)
    weight, bias = (
        g.op("Reshape", each, g.ints([1, -1, *column[2:]]), shape=(1, *column[1:])) for each in (weight, bias)
    )
    return g.op("Add", g.op("Mul", result, weight, shape=x.shape), bias, shape=x.shape)


@group_norm.decompose
def group_norm_as_instance_norm(g, x, num_groups, weight, bias, eps):
    """Reshapes each group to a channel of an image: ncnn supports InstanceNormalization of rank 4 only."""
    type_ = g.type(x)
    groups = [type_.shape[0], num_groups, math.prod(type_.shape[1:]) // num_groups, 1]
    result = g.call("aten::instance_norm", g.call("aten::reshape", x, groups), None, None, eps)
    result = precise(g, g.call("aten::reshape", result, list(type_.shape)))
    weight, bias = _columns(g, type_, weight, bias)
    return scaled(g, result, weight, bias, type_.dtype)


@instance_norm.decompose
def instance_norm_in_steps(g, x, weight, bias, eps):
    type_ = g.type(x)
    result = standardized(g, precise(g, x), list(range(2, type_.rank)), eps)
    weight, bias = _columns(g, type_, weight, bias)
    return scaled(g, result, weight, bias, type_.dtype)


def _columns(g, type_, *parameters):
    """Reshapes parameters [C] so that they broadcast to ``type_``."""
    column = [1, type_.shape[1], *[1] * (type_.rank - 2)]
    return [None if value is None else g.call("aten::reshape", value, column) for value in parameters]
