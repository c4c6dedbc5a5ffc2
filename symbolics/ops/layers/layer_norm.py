"""aten::layer_norm and aten::rms_norm: normalization over the last axes.

layer_norm: (x - mean) / sqrt(variance + eps) * weight + bias, with the variance of the population;
rms_norm: x / sqrt(mean of squares + eps) * weight.
"""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.normalizing import over_root, precise, scaled, standardized
from tmconvert.symbolics.layouts import SOURCE
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integers, number
from tmconvert.symbolics.traits import IntegerSteps, NormalizesRows

Array = np.ndarray


def _result(x: TensorType, normalized_shape: list[int], *parameters: TensorType | None) -> TensorType:
    shape = tuple(normalized_shape)
    if not shape or x.shape[max(x.rank - len(shape), 0) :] != shape:
        raise ValueError(f"x {x} does not have the trailing shape {shape}")
    for parameter in parameters:
        if parameter is not None and parameter.shape != shape:
            raise ValueError(f"a parameter {parameter} does not have the shape {shape}")
    return x


layer_norm = Op(
    "aten::layer_norm",
    args=[
        Tensor("x", FLOATS), integers("normalized_shape"), Tensor("weight", FLOATS, optional=True),
        Tensor("bias", FLOATS, optional=True), number("eps", 1e-5),
    ],
    result=lambda x, normalized_shape, weight, bias, eps: _result(x, normalized_shape, weight, bias),
    layout=SOURCE,
    traits=[NormalizesRows(), IntegerSteps(lambda g, **given: idioms.integer_steps.layer_norm(g, **given))],
)  # fmt: skip
rms_norm = Op(
    "aten::rms_norm",
    args=[
        Tensor("x", FLOATS), integers("normalized_shape"), Tensor("weight", FLOATS, optional=True),
        number("eps", None),
    ],
    result=lambda x, normalized_shape, weight, eps: _result(x, normalized_shape, weight),
    layout=SOURCE,
    traits=[NormalizesRows(), IntegerSteps(lambda g, **given: idioms.integer_steps.rms_norm(g, **given))],
)  # fmt: skip
OPS = [layer_norm, rms_norm]


def normalized(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    """Normalizes to mean 0 and variance 1 over ``axes``, in float32 or wider."""
    x = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
    if not x.size:  # NumPy warns of means of nothing
        return x
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + eps, dtype=x.dtype)


@layer_norm.reference
def layer_norm_ref(
    x: Array, normalized_shape: list[int], weight: Array | None, bias: Array | None, eps: float
) -> Array:
    """Shapes: x [..., *normalized_shape]. Source: torch.nn.functional.layer_norm."""
    result = normalized(x, tuple(range(-len(normalized_shape), 0)), eps)
    result = result if weight is None else result * weight
    return (result if bias is None else result + bias).astype(x.dtype)


@rms_norm.reference
def rms_norm_ref(x: Array, normalized_shape: list[int], weight: Array | None, eps: float | None) -> Array:
    """RMS normalization; the default ``eps`` is the machine epsilon. Source: torch.nn.functional.rms_norm."""
    wide = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
    squares = (wide * wide).mean(tuple(range(-len(normalized_shape), 0)), keepdims=True)
    result = wide / np.sqrt(squares + _epsilon(x.dtype, eps), dtype=wide.dtype)
    return (result if weight is None else result * weight).astype(x.dtype)


def _epsilon(dtype: np.dtype, eps: float | None) -> float:
    return float(np.finfo(dtype).eps) if eps is None else float(eps)


@layer_norm.onnx(since=17)
def layer_norm_onnx17(g, x, normalized_shape, weight, bias, eps):
    weight = weight or g.const(np.ones(normalized_shape, x.dtype))
    axis = -len(normalized_shape)
    return g.op("LayerNormalization", x, weight, bias, axis=axis, epsilon=float(eps))


@rms_norm.onnx(since=23)
def rms_norm_onnx23(g, x, normalized_shape, weight, eps):
    weight = weight or g.const(np.ones(normalized_shape, x.dtype))
    axis = -len(normalized_shape)
    return g.op("RMSNormalization", x, weight, axis=axis, epsilon=_epsilon(x.dtype, eps))


@layer_norm.decompose
def layer_norm_in_steps(g, x, normalized_shape, weight, bias, eps):
    dtype = g.type(x).dtype
    axes = list(range(-len(normalized_shape), 0))
    return scaled(g, standardized(g, precise(g, x), axes, eps), weight, bias, dtype)


@rms_norm.decompose
def rms_norm_in_steps(g, x, normalized_shape, weight, eps):
    dtype = g.type(x).dtype
    x, axes = precise(g, x), list(range(-len(normalized_shape), 0))
    return scaled(g, over_root(g, x, x, axes, _epsilon(dtype, eps)), weight, None, dtype)
