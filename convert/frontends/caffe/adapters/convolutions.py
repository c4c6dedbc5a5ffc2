"""Convolution, Deconvolution and Im2col."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.formats.caffe.layers.convolution import Window, window
from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()
MOST_AXES = 3
Images = Callable[[Any, int, Window], Any]


def _with_images(layer: LayerCall, convolved: Images) -> list[Any]:
    """Applies a convolution to each bottom, with the axes before the channels as one."""
    made = []
    for number, (x, shape) in enumerate(zip(layer.bottoms, layer.shapes, strict=True)):
        over = window(layer.parameters, len(shape))
        if not 1 <= len(over.kernel) <= MOST_AXES:
            raise Refusal(f"a convolution over {len(over.kernel)} axes")
        images = layer.reshaped(x, [math.prod(shape[: over.axis]), *shape[over.axis :]])
        result = convolved(images, shape[over.axis], over)
        made.append(result if layer.results is None else layer.reshaped(result, layer.results[number]))
    return made


def _bias(layer: LayerCall) -> Any:
    parameters = layer.parameters
    return layer.blob(1, [parameters.num_output]) if parameters.bias_term else None


@LAYERS.layer("Convolution", "DepthwiseConv", "DepthwiseConvolution", "ConvolutionDepthwise")
def convolution(layer: LayerCall) -> list[Any]:
    """ConvolutionDepthwise, of ShuffleNet's fork, has as many groups as channels, and does not state them."""
    parameters = layer.parameters
    is_depthwise = layer.net_layer.type == "ConvolutionDepthwise"

    def convolved(images: Any, channels: int, over: Window) -> Any:
        groups = channels if is_depthwise else parameters.group
        if channels % groups or parameters.num_output % groups:
            raise Refusal(f"{groups} groups of {channels} channels, with {parameters.num_output} outputs")
        weight = layer.blob(0, [parameters.num_output, channels // groups, *over.kernel])
        settings = (over.stride, over.pad, over.dilation, groups)
        return layer.call(f"conv{len(over.kernel)}d", images, weight, _bias(layer), *settings)

    return _with_images(layer, convolved)


@LAYERS.layer("Deconvolution")
def deconvolution(layer: LayerCall) -> list[Any]:
    parameters = layer.parameters

    def convolved(images: Any, channels: int, over: Window) -> Any:
        groups, axes = parameters.group, len(over.kernel)
        weight = layer.blob(0, [channels, parameters.num_output // groups, *over.kernel])
        settings = (over.stride, over.pad, [0] * axes, groups, over.dilation)
        return layer.call(f"conv_transpose{axes}d", images, weight, _bias(layer), *settings)

    return _with_images(layer, convolved)


@LAYERS.layer("Im2col")
def im2col(layer: LayerCall) -> Any:
    def columns(images: Any, channels: int, over: Window) -> Any:
        if len(over.kernel) != 2:
            raise Refusal(f"Im2col over {len(over.kernel)} axes")
        return layer.call("im2col", images, over.kernel, over.dilation, over.pad, over.stride)

    return _with_images(layer, columns)
