"""Elementwise layers of one or several blobs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape, elementwise, same_shape
from tmconvert.formats.caffe.net import NetLayer


def sigmoid(x: np.ndarray) -> Any:
    small = np.exp(-np.abs(x))  # results next to 0 keep their digits
    return np.where(x >= 0, np.float32(1), small) / (1 + small)


def _relu(parameters: Any, x: np.ndarray) -> Any:
    return (
        np.where(x > 0, x, x * np.float32(parameters.negative_slope))
        if parameters.negative_slope
        else _positive(x)
    )


def _positive(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, np.float32(0))


def _affine(parameters: Any, x: np.ndarray) -> Any:
    """shift + scale x, each only where it does something: a negative zero stays one."""
    made = x if parameters.scale == 1 else np.float32(parameters.scale) * x
    return made if parameters.shift == 0 else np.float32(parameters.shift) + made


def _power(parameters: Any, x: np.ndarray) -> Any:
    """(shift + scale x)^power; a power or scale of 0 is a constant, whatever x is."""
    if parameters.power * parameters.scale == 0:
        value = 1.0 if parameters.power == 0 else parameters.shift**parameters.power
        return np.full_like(x, value)
    made = _affine(parameters, x)
    return made if parameters.power == 1 else np.power(made, np.float32(parameters.power))


def _base(parameters: Any) -> float:
    """The natural logarithm of the base; -1 stands for e."""
    return 1.0 if parameters.base == -1 else math.log(parameters.base)


def _exp(parameters: object, x: np.ndarray) -> Any:
    return np.exp(np.float32(_base(parameters)) * _affine(parameters, x))


def _log(parameters: object, x: np.ndarray) -> Any:
    return np.log(_affine(parameters, x)) * np.float32(1 / _base(parameters))


def _clip(parameters: Any, x: np.ndarray) -> Any:
    return np.clip(x, np.float32(parameters.min), np.float32(parameters.max))


def _softplus(x: np.ndarray) -> Any:
    return _positive(x) + np.log1p(np.exp(-np.abs(x)))


def _gelu(parameters: object, x: np.ndarray) -> Any:
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2)))


def _gelu_by_tanh(x: np.ndarray) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _elu(parameters: Any, x: np.ndarray) -> Any:
    return _positive(x) + np.float32(parameters.alpha) * np.expm1(np.minimum(x, np.float32(0)))


def _prelu(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """The slopes are one for each channel, or one for all."""
    (x,), slopes = bottoms, layer.blobs[0]
    slopes = slopes.reshape(-1, *(1,) * (x.ndim - 2)) if slopes.size > 1 else slopes.reshape(())
    return [_positive(x) + slopes * np.minimum(x, np.float32(0))]


def _equal_shapes(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    if any(shape != bottoms[0] for shape in bottoms):
        raise ValueError(f"bottoms of different shapes: {', '.join(map(str, map(list, bottoms)))}")
    coefficients = layer.parameters.coeff
    if coefficients and len(coefficients) != len(bottoms):
        raise ValueError(f"{len(coefficients)} coefficients for {len(bottoms)} bottoms")
    return [bottoms[0]]


def _eltwise(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    product, _, largest = 0, 1, 2  # EltwiseOp
    if layer.parameters.operation == largest:
        return [np.maximum.reduce(bottoms)]
    if layer.parameters.operation == product:
        return [np.multiply.reduce(bottoms)]
    coefficients = [np.float32(value) for value in layer.parameters.coeff] or [np.float32(1)] * len(bottoms)
    total = coefficients[0] * bottoms[0]
    for coefficient, bottom in zip(coefficients[1:], bottoms[1:], strict=True):
        total = total + coefficient * bottom
    return [total]


def _plain(function: Callable[[np.ndarray], Any], **facts: Any) -> Layer:
    return elementwise(lambda parameters, x: function(x), **facts)


LAYERS = {
    "AbsVal": _plain(np.abs),
    "BNLL": _plain(_softplus),
    "Clip": elementwise(_clip, parameters="clip_param"),
    "Dropout": _plain(lambda x: x, parameters="dropout_param"),  # at the phase TEST
    "ELU": elementwise(_elu, parameters="elu_param"),
    "Eltwise": Layer(_equal_shapes, _eltwise, bottoms=(2, None), parameters="eltwise_param"),
    "Exp": elementwise(_exp, parameters="exp_param"),
    "Gelu": elementwise(_gelu, is_of_fork=True),
    "GeluApproximation": _plain(_gelu_by_tanh, is_of_fork=True),
    "HardSwish": _plain(lambda x: x * np.clip(x + np.float32(3), 0, 6) / np.float32(6), is_of_fork=True),
    "Log": elementwise(_log, parameters="log_param"),
    "Mish": _plain(lambda x: x * np.tanh(_softplus(x)), is_of_fork=True),
    "PReLU": Layer(same_shape, _prelu, overwrites=True, parameters="prelu_param"),
    "Power": elementwise(_power, parameters="power_param"),
    "ReLU": elementwise(_relu, parameters="relu_param", clamps_at_zero=True),
    "ReLU6": _plain(lambda x: np.clip(x, np.float32(0), np.float32(6)), is_of_fork=True),
    "Sigmoid": _plain(sigmoid, parameters="sigmoid_param"),
    "Swish": elementwise(
        lambda parameters, x: x * sigmoid(np.float32(parameters.beta) * x), parameters="swish_param"
    ),
    "TanH": _plain(np.tanh, parameters="tanh_param"),
    "Threshold": elementwise(
        lambda parameters, x: x > np.float32(parameters.threshold), parameters="threshold_param"
    ),
}
