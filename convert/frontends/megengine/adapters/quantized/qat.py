"""megengine.module.qat: float layers with folded batch norm, between fake quantizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import matrices, tensor
from tmconvert.frontends.megengine.adapters.modules import functional_forms, layers
from tmconvert.frontends.megengine.adapters.quantized.fake_quant import (
    Quantizer,
    applied,
    bias_qparams,
    is_enabled,
    quantizer_of,
)
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir import TracedModule
from tmconvert.ir.emitter import Emitter

MODULES = Table("megengine.module.qat.")


class Layer(NamedTuple):
    """A layer with a weight. ``child`` is its name in modules with a batch norm.

    ``call(g, module, inp, weight, bias)`` computes it. ``column(channels, groups)`` is the shape in
    which a factor for each channel of the result multiplies the weight.
    """

    child: str
    call: Callable[..., Any]
    column: Callable[[int], list[int]]


def _linear(g: Emitter, module: TracedModule, inp, weight, bias) -> Any:
    return g.call("aten::linear", inp, weight, bias)


CONV = Layer("conv", layers.convolved, lambda groups: [-1, 1, 1, 1] if groups == 1 else [groups, -1, 1, 1, 1])
TRANSPOSED = Layer(
    "conv_transpose2d",
    layers.transposed,
    lambda groups: [1, -1, 1, 1] if groups == 1 else [groups, 1, -1, 1, 1],
)
PRODUCT = Layer("", matrices.multiplied, lambda groups: [-1, 1])
LINEAR = Layer("linear", _linear, lambda groups: [-1, 1])

# class -> (layer, whether a batch norm follows, whether ReLU does)
LAYERS: dict[str, tuple[Layer, bool, bool]] = {
    "conv.Conv2d": (CONV, False, False),
    "conv.ConvRelu2d": (CONV, False, True),
    "conv_bn.ConvBn2d": (CONV, True, False),
    "conv_bn.ConvBnRelu2d": (CONV, True, True),
    "conv.ConvTranspose2d": (TRANSPOSED, False, False),
    "conv.ConvTransposeRelu2d": (TRANSPOSED, False, True),
    "conv_transpose_bn.ConvTransposeBn2d": (TRANSPOSED, True, False),
    "conv_transpose_bn.ConvTransposeBnRelu2d": (TRANSPOSED, True, True),
    "linear.Linear": (LINEAR, False, False),
    "linear.LinearRelu": (LINEAR, False, True),
    "linear_bn.LinearBn1d": (LINEAR, True, False),
    "linear_bn.LinearBnRelu1d": (LINEAR, True, True),
    "batch_matmul_activation.BatchMatMulActivation": (PRODUCT, False, False),
}


def _add_layer(name: str, layer: Layer, normed: bool, rectified: bool) -> None:
    @MODULES.add(name)
    def adapter(g, module, inp):
        inner = module.children[layer.child] if normed else module
        weight, bias = _folded(layer, module) if normed else _parameters(inner)
        weight, bias = quantized_parameters(g, module, inp, weight, bias)
        result = layer.call(g, inner, inp, weight, bias)
        return activation(g, module, g.call("aten::relu", result) if rectified else result)


for _name, _row in LAYERS.items():
    _add_layer(_name, *_row)


def activation(g: Emitter, module: TracedModule, value) -> Any:
    """``QATModule.apply_quant_activation``."""
    return applied(g, value, _part(module, "act_fake_quant"), _part(module, "act_observer"))


def quantized_parameters(
    g: Emitter, module: TracedModule, inp, weight: np.ndarray, bias: np.ndarray | None
) -> tuple[Any, Any]:
    """``apply_quant_weight`` and ``apply_quant_bias``; returns the bias as a vector."""
    fake_quant = _part(module, "weight_fake_quant")
    quantizer = quantizer_of(fake_quant, _part(module, "weight_observer"), weight)
    weight_value = _quantized_weight(g, module, weight, quantizer)
    if bias is None:
        return weight_value, None
    value = functional_forms.parameter(g, module, "bias", bias.reshape(-1))
    if is_enabled(fake_quant) and is_enabled(_part(module, "act_fake_quant")):
        qparams = bias_qparams(*(getattr(part, "qparams", None) for part in (inp, weight_value)))
        value = value if qparams is None else g.quantized(value, qparams)
    return weight_value, value


def _quantized_weight(
    g: Emitter, module: TracedModule, weight: np.ndarray, quantizer: Quantizer | None
) -> Any:
    value = functional_forms.parameter(g, module, "weight", weight)
    if quantizer is None:
        return value
    if not quantizer.is_grouped(weight.ndim):
        return quantizer.apply(g, value)
    # channels of groups run along two axes: one of the two merged
    merged = quantizer.merged().apply(g, tensor.reshape(g, value, [-1, *weight.shape[2:]]))
    return tensor.reshape(g, merged, list(weight.shape))


def _part(module: TracedModule, name: str) -> Any:
    """Returns an observer or a fake quant, or None."""
    return module.children.get(name)


def _parameters(module: TracedModule) -> tuple[np.ndarray, np.ndarray | None]:
    return module.tensors["weight"], module.tensors.get("bias")


def _folded(layer: Layer, module: TracedModule) -> tuple[np.ndarray, np.ndarray]:
    """Returns weight and bias with the batch norm folded in, in float32 as MegEngine computes them.

    W * gamma / sqrt(var + eps), beta + gamma * (b - mean) / sqrt(var + eps)
    """
    inner, norm = module.children[layer.child], module.children["bn"]
    weight, bias = _parameters(inner)
    gamma, beta, mean, variance, bias = (
        None if array is None else np.asarray(array, np.float32).reshape(-1)
        for array in (*(norm.tensors.get(name) for name in NORM), bias)
    )
    if mean is None or variance is None:
        raise Refusal(
            "a batch norm without statistics cannot be folded", "train it with track_running_stats=True"
        )
    with np.errstate(all="ignore"):  # a channel that overflows here does so in MegEngine
        inverse = np.float32(1) / np.sqrt(variance + np.float32(norm.attributes["eps"]))
        scale = inverse if gamma is None else gamma * inverse
        shift = -mean if bias is None else bias - mean
        shift = (shift if gamma is None else gamma * shift) * inverse
        shift = shift if beta is None else beta + shift
        return weight * scale.reshape(layer.column(inner.attributes.get("groups", 1))), shift


NORM = ("weight", "bias", "running_mean", "running_var")


# ---- modules without a weight


MODULES.add("quant_dequant.QuantStub")(lambda g, module, inp: activation(g, module, inp))
MODULES.add("quant_dequant.DequantStub")(lambda g, module, inp: inp)


@MODULES.add("elemwise.Elemwise")
def elemwise(g, module, *inps):
    return activation(g, module, functional_forms.elemwise_module(g, module, *inps))


@MODULES.add("concat.Concat")
def concat(g, module, inps, axis=0):
    return activation(g, module, tensor.concat(g, inps, axis))
