"""Elementwise layers of one or several blobs."""

from __future__ import annotations

import math
from typing import Any

from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()
_PLAIN = {
    "AbsVal": "abs",
    "BNLL": "softplus",
    "Gelu": "gelu",
    "HardSwish": "hardswish",
    "Mish": "mish",
    "ReLU6": "relu6",
    "Sigmoid": "sigmoid",
    "TanH": "tanh",
}
_POWERS = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}
_PRODUCT, _LARGEST = 0, 2  # EltwiseOp


@LAYERS.layer("ReLU", "RReLU")
def relu(layer: LayerCall) -> Any:
    """The slope of a RReLU is drawn in training alone."""
    slope = layer.parameters.negative_slope
    return layer.call("leaky_relu", layer.x, negative_slope=slope) if slope else layer.call("relu", layer.x)


@LAYERS.layer("CReLU")
def crelu(layer: LayerCall) -> Any:
    slope, axis = layer.parameters.negative_slope, layer.parameters.concat_axis
    both = [layer.x, layer.call("neg", layer.x)]
    made = [
        layer.call("leaky_relu", each, negative_slope=slope) if slope else layer.call("relu", each)
        for each in both
    ]
    return layer.call("cat", made, axis)


def _affine(layer: LayerCall, x: Any) -> Any:
    scale, shift = layer.parameters.scale, layer.parameters.shift
    made = x if scale == 1 else layer.call("mul", x, layer.number(scale))
    return made if shift == 0 else layer.call("add", made, layer.number(shift))


@LAYERS.layer("Power")
def power(layer: LayerCall) -> Any:
    """(shift + scale x)^power; a power or scale of 0 is a constant, whatever x is."""
    parameters = layer.parameters
    if parameters.power * parameters.scale == 0:
        value = 1.0 if parameters.power == 0 else parameters.shift**parameters.power
        return layer.call("expand", layer.number(value), list(layer.shapes[0]))
    made = _affine(layer, layer.x)
    if parameters.power in _POWERS:
        return layer.call(_POWERS[parameters.power], made)
    return made if parameters.power == 1 else layer.call("pow", made, layer.number(parameters.power))


def _base(layer: LayerCall) -> float:
    """Returns the natural logarithm of the base; -1 stands for e."""
    base = float(layer.parameters.base)
    return 1.0 if base == -1 else math.log(base)


@LAYERS.layer("Exp")
def exp(layer: LayerCall) -> Any:
    made, base = _affine(layer, layer.x), _base(layer)
    return layer.call("exp", made if base == 1 else layer.call("mul", made, layer.number(base)))


@LAYERS.layer("Log")
def log(layer: LayerCall) -> Any:
    made, base = layer.call("log", _affine(layer, layer.x)), _base(layer)
    return made if base == 1 else layer.call("mul", made, layer.number(1 / base))


@LAYERS.layer("Clip")
def clip(layer: LayerCall) -> Any:
    return layer.call("clamp", layer.x, min=layer.parameters.min, max=layer.parameters.max)


LAYERS.layer("ELU")(lambda layer: layer.call("elu", layer.x, alpha=layer.parameters.alpha))


@LAYERS.layer("PReLU")
def prelu(layer: LayerCall) -> Any:
    is_one = layer.parameters.channel_shared
    return layer.call("prelu", layer.x, layer.blob(0, [1 if is_one else layer.shapes[0][1]]))


@LAYERS.layer("Swish")
def swish(layer: LayerCall) -> Any:
    beta = layer.parameters.beta
    if beta == 1:
        return layer.call("silu", layer.x)
    gate = layer.call("sigmoid", layer.call("mul", layer.x, layer.number(beta)))
    return layer.call("mul", layer.x, gate)


@LAYERS.layer("Threshold")
def threshold(layer: LayerCall) -> Any:
    above = layer.call("gt", layer.x, layer.number(layer.parameters.threshold))
    return layer.call("to", above, dtype="float32")


LAYERS.layer("GeluApproximation")(lambda layer: layer.call("gelu", layer.x, approximate="tanh"))


@LAYERS.layer("Dropout")
def dropout(layer: LayerCall) -> Any:
    """Nothing at the phase TEST, but in forks where training does not scale."""
    if layer.parameters.scale_train:
        return layer.x
    return layer.call("mul", layer.x, layer.number(1 - layer.parameters.dropout_ratio))


LAYERS.layer(*_PLAIN)(lambda layer: layer.call(_PLAIN[layer.net_layer.type], layer.x))


@LAYERS.layer("Eltwise")
def eltwise(layer: LayerCall) -> Any:
    operation = layer.parameters.operation
    first, *rest = layer.bottoms
    if operation in (_PRODUCT, _LARGEST):
        for each in rest:
            first = layer.call("mul" if operation == _PRODUCT else "maximum", first, each)
        return first
    factors = list(layer.parameters.coeff) or [1.0] * len(layer.bottoms)
    total = _times(layer, first, factors[0])
    for each, factor in zip(rest, factors[1:], strict=True):
        is_minus = factor == -1
        scaled = each if is_minus else _times(layer, each, factor)
        total = layer.call("sub" if is_minus else "add", total, scaled)
    return total


def _times(layer: LayerCall, x: Any, factor: float) -> Any:
    return x if factor == 1 else layer.call("mul", x, layer.number(factor))
