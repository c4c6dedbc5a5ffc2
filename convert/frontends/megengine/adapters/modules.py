"""Builtin modules: each is its functional form, with arguments from the module's attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import TracedModule
from ....ir.emitter import Emitter
from . import modes, nn, tensor
from .table import Adapter, Table
from .values import pair

MODULES = Table("megengine.module.")

ACTIVATIONS = {"ReLU": "RELU", "Sigmoid": "SIGMOID", "SiLU": "SILU", "GELU": "GELU"}


def _activation(mode: str) -> Adapter:
    return lambda g, module, inputs: modes.applied(g, mode, inputs)


for _name, _mode in ACTIVATIONS.items():
    MODULES.add(f"activation.{_name}")(_activation(_mode))


def parameter(g: Emitter, module: TracedModule, name: str, array: np.ndarray | None = None) -> Any:
    """A parameter, or ``array`` made of it, as a constant called by its path; None if there is none."""
    array = module.tensors.get(name) if array is None else array
    if array is None:
        return None
    return g.parameter(array, f"{module.name}.{name}" if module.name else name)


@MODULES.add("conv.Conv2d")
def conv2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    return convolution(g, module, inp, parameter(g, module, "weight"), parameter(g, module, "bias"))


def convolution(g: Emitter, module: TracedModule, inp: Any, weight: Any, bias: Any) -> Any:
    """A Conv2d with this weight and bias in place of its own."""
    attributes = module.attributes
    padding = pair(attributes["padding"])
    mode = str(attributes.get("padding_mode", "zeros"))
    if mode != "zeros" and any(padding):
        inp = nn.pad(g, inp, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2), mode)
        padding = [0, 0]
    return nn.conv2d(
        g,
        inp,
        weight,
        bias,
        attributes["stride"],
        padding,
        attributes["dilation"],
        attributes["groups"],
        attributes.get("conv_mode", "cross_correlation"),
    )


@MODULES.add("conv.ConvRelu2d")
def conv_relu2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    return g.call("aten::relu", conv2d(g, module, inp))


@MODULES.add("conv_bn.ConvBn2d")
def conv_bn2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    return batch_norm(g, module.children["bn"], conv2d(g, module.children["conv"], inp))


@MODULES.add("conv_bn.ConvBnRelu2d")
def conv_bn_relu2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    return g.call("aten::relu", conv_bn2d(g, module, inp))


@MODULES.add("batchnorm.BatchNorm1d", "batchnorm.BatchNorm2d", "batchnorm.SyncBatchNorm")
def batch_norm(g: Emitter, module: TracedModule, inp: Any) -> Any:
    """Inference, whatever ``training`` says: a conversion is for deployment."""
    names = ("running_mean", "running_var", "weight", "bias")
    return nn.batch_norm(
        g,
        inp,
        *(parameter(g, module, name) for name in names),
        eps=module.attributes["eps"],
        param_dim=module.attributes.get("param_dim", "dim_1c11"),
    )


@MODULES.add("pooling.MaxPool2d")
def max_pool2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    attributes = module.attributes
    return nn.max_pool2d(g, inp, attributes["kernel_size"], attributes["stride"], attributes["padding"])


@MODULES.add("pooling.AvgPool2d")
def avg_pool2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    attributes = module.attributes
    mode = attributes.get("mode", "average_count_exclude_padding")
    return nn.avg_pool2d(g, inp, attributes["kernel_size"], attributes["stride"], attributes["padding"], mode)


@MODULES.add("adaptive_pooling.AdaptiveAvgPool2d")
def adaptive_avg_pool2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    return nn.adaptive_avg_pool2d(g, inp, module.attributes["oshp"])


@MODULES.add("adaptive_pooling.AdaptiveMaxPool2d")
def adaptive_max_pool2d(g: Emitter, module: TracedModule, inp: Any) -> Any:
    return nn.adaptive_max_pool2d(g, inp, module.attributes["oshp"])


@MODULES.add("activation.LeakyReLU")
def leaky_relu(g: Emitter, module: TracedModule, inputs: Any) -> Any:
    return modes.applied(g, "PRELU", inputs, module.attributes["negative_slope"])


@MODULES.add("activation.PReLU")
def prelu(g: Emitter, module: TracedModule, inputs: Any) -> Any:
    return modes.applied(g, "PRELU", inputs, parameter(g, module, "weight"))


@MODULES.add("padding.Pad")
def pad(g: Emitter, module: TracedModule, src: Any) -> Any:
    attributes = module.attributes
    return nn.pad(g, src, attributes["pad_width"], attributes["mode"], attributes.get("pad_val", 0.0))


@MODULES.add("identity.Identity", "dropout.Dropout")
def identity(g: Emitter, module: TracedModule, inputs: Any) -> Any:
    return inputs


@MODULES.add("concat.Concat")
def concat(g: Emitter, module: TracedModule, tensors: Any, axis: int = 0) -> Any:
    return tensor.concat(g, tensors, axis)


@MODULES.add("elemwise.Elemwise")
def elemwise_module(g: Emitter, module: TracedModule, *inps: Any) -> Any:
    return modes.applied(g, module.attributes["method"], *inps)
