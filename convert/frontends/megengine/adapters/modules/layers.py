"""Builtin modules with windows or statistics: their functional forms, with the modules' attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import convolutions, nn, normalization, windows
from tmconvert.frontends.megengine.adapters.modules.functional_forms import parameter
from tmconvert.frontends.megengine.adapters.values import per_axis, promoted, rank
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir import TracedModule
from tmconvert.ir.emitter import Emitter

MODULES = Table("megengine.module.")


def _parameters(g: Emitter, module: TracedModule) -> tuple[Any, Any]:
    return parameter(g, module, "weight"), parameter(g, module, "bias")


@MODULES.add("conv.Conv1d", "conv.Conv2d", "conv.Conv3d")
def convolution(g, module, inp):
    return convolved(g, module, inp, *_parameters(g, module))


def convolved(g: Emitter, module: TracedModule, inp, weight, bias) -> Any:
    """A convolution with this weight and bias in place of its own."""
    attributes, axes = module.attributes, rank(g, inp) - 2
    convolutions.cross_correlation(attributes.get("conv_mode", "cross_correlation"))
    padding = per_axis(g, attributes["padding"], axes)
    mode = str(attributes.get("padding_mode", "zeros"))
    if mode != "zeros" and any(padding):
        inp = nn.pad(g, inp, ((0, 0), (0, 0), *((amount, amount) for amount in padding)), mode)
        padding = [0] * axes
    inp, weight = promoted(g, inp, weight)
    return convolutions.convolved(
        g, inp, weight, bias, attributes["stride"], padding, attributes["dilation"], attributes["groups"]
    )


@MODULES.add("conv.ConvTranspose2d", "conv.ConvTranspose3d")
def conv_transpose(g, module, inp):
    return transposed(g, module, inp, *_parameters(g, module))


def transposed(g: Emitter, module: TracedModule, inp, weight, bias) -> Any:
    """A transposed convolution with this weight and bias in place of its own."""
    attributes = module.attributes
    convolutions.cross_correlation(attributes.get("conv_mode", "cross_correlation"))
    return convolutions.transposed(
        g,
        inp,
        weight,
        bias,
        attributes["stride"],
        attributes["padding"],
        attributes.get("output_padding", 0),
        attributes["dilation"],
        attributes["groups"],
    )


@MODULES.add("conv.LocalConv2d")
def local_conv2d(g, module, inp):
    names = ("stride", "padding", "dilation", "conv_mode")
    values = (module.attributes[name] for name in names)
    return convolutions.local_conv2d(g, inp, parameter(g, module, "weight"), None, *values)


@MODULES.add("conv.DeformableConv2d")
def deformable_conv2d(g, module, inp, offset, mask):
    weight, bias = _parameters(g, module)
    return convolutions.deformable_conv2d(g, inp, weight, offset, mask, bias, *_windows(module))


@MODULES.add("conv.RegionRestrictedConv")
def region_restricted_conv(g, module, inp, rin, rout):
    weight, bias = _parameters(g, module)
    return convolutions.region_restricted_conv(g, inp, weight, rin, rout, bias, *_windows(module))


def _windows(module: TracedModule) -> list[Any]:
    return [module.attributes[name] for name in ("stride", "padding", "dilation", "groups", "conv_mode")]


Layer = Callable[[Emitter, TracedModule, Any], Any]


def _add_rectified(name: str, layer: Layer) -> None:
    MODULES.add(name)(lambda g, module, inp: g.call("aten::relu", layer(g, module, inp)))


def _normed(child: str, layer: Layer) -> Layer:
    def adapter(g: Emitter, module: TracedModule, inp) -> Any:
        return batch_norm(g, module.children["bn"], layer(g, module.children[child], inp))

    return adapter


@MODULES.add("batchnorm.BatchNorm1d", "batchnorm.BatchNorm2d", "batchnorm.SyncBatchNorm")
def batch_norm(g, module, inp):
    """Batch norm of inference for any value of ``training``: a conversion is for deployment."""
    attributes = module.attributes
    if attributes.get("freeze") and rank(g, inp) != 4 and not module.class_name.endswith("SyncBatchNorm"):
        raise Refusal("a frozen BatchNorm1d multiplies by (1, C, 1, 1) in MegEngine", "use freeze=False")
    names = ("running_mean", "running_var", "weight", "bias")
    return normalization.batch_norm(
        g,
        inp,
        *(parameter(g, module, name) for name in names),
        training=not attributes.get("track_running_stats", True),
        eps=attributes["eps"],
        param_dim=attributes.get("param_dim", "dim_1c11"),
    )


_add_rectified("conv.ConvRelu2d", convolution)
_add_rectified("conv.ConvTransposeRelu2d", conv_transpose)
for _name, _child, _layer in (
    ("conv_bn.ConvBn", "conv", convolution),
    ("conv_transpose_bn.ConvTransposeBn", "conv_transpose2d", conv_transpose),
):
    MODULES.add(f"{_name}2d")(_normed(_child, _layer))
    _add_rectified(f"{_name}Relu2d", _normed(_child, _layer))


def _add(name: str, function: Callable[..., Any], *attributes: str) -> None:
    """A module without tensors is its function, with the attributes as further arguments."""

    @MODULES.add(name)
    def adapter(g, module, inp):
        return function(g, inp, *(module.attributes[attribute] for attribute in attributes))


def _add_norm(name: str, function: Callable[..., Any], *attributes: str) -> None:
    @MODULES.add(f"normalization.{name}")
    def adapter(g, module, x):
        values = (module.attributes[attribute] for attribute in (*attributes, "affine"))
        return function(g, x, *values, *_parameters(g, module), module.attributes["eps"])


WINDOW = ("kernel_size", "padding", "stride", "dilation")
_add("pooling.MaxPool2d", windows.max_pool2d, "kernel_size", "stride", "padding")
_add("adaptive_pooling.AdaptiveAvgPool2d", windows.adaptive_avg_pool2d, "oshp")
_add("adaptive_pooling.AdaptiveMaxPool2d", windows.adaptive_max_pool2d, "oshp")
_add("sliding_window.SlidingWindow", windows.sliding_window, *WINDOW)
_add("sliding_window.SlidingWindowTranspose", windows.sliding_window_transpose, "output_size", *WINDOW)
_add("pixel_shuffle.PixelShuffle", windows.pixel_shuffle, "upscale_factor")
_add("lrn.LocalResponseNorm", normalization.local_response_norm, "kernel_size", "k", "alpha", "beta")
_add_norm("LayerNorm", normalization.layer_norm, "normalized_shape")
_add_norm("GroupNorm", normalization.group_norm, "num_groups")
_add_norm("InstanceNorm", normalization.instance_norm)
_add_norm("GeneralNorm", normalization.general_norm, "normalized_axis")


@MODULES.add("pooling.AvgPool2d")
def avg_pool2d(g, module, inp):
    names, mode = ("kernel_size", "stride", "padding"), "average_count_exclude_padding"
    values = (module.attributes[name] for name in names)
    return windows.avg_pool2d(g, inp, *values, module.attributes.get("mode", mode))
