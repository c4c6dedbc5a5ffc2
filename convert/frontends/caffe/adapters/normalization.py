"""Normalization layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()


@LAYERS.layer("BatchNorm")
def batch_norm(layer: LayerCall) -> Any:
    """(x - mean) / sqrt(variance + eps); both are stored as sums, with the factor to divide them by."""
    parameters, shape = layer.parameters, layer.shapes[0]
    channels = shape[1] if len(shape) > 1 else 1
    if parameters.HasField("use_global_stats") and not parameters.use_global_stats:
        return _of_batch(layer)
    sums = [layer.blob(number, [channels]) for number in (0, 1)]
    mean, variance = (_divided(layer, each) for each in sums)
    return layer.call("batch_norm", layer.x, None, None, mean, variance, parameters.eps)


def _divided(layer: LayerCall, sums: Any) -> Any:
    factor = layer.blob(2, [1])
    known = layer.g.known(factor)
    if known is not None and known[0] == 1:
        return sums
    zero = layer.number(0)
    share = layer.call(
        "where", layer.call("eq", factor, zero), layer.reshaped(zero, [1]), layer.call("reciprocal", factor)
    )
    return layer.call("mul", sums, share)


def _of_batch(layer: LayerCall) -> Any:
    """With the statistics of the blob itself."""
    axes = [axis for axis in range(len(layer.shapes[0])) if axis != 1]
    centred = layer.call("sub", layer.x, layer.call("mean", layer.x, axes, True))
    variance = layer.call("mean", layer.call("square", centred), axes, True)
    deviation = layer.call("add", variance, layer.number(layer.parameters.eps))
    return layer.call("div", centred, layer.call("sqrt", deviation))


@LAYERS.layer("MVN")
def mvn(layer: LayerCall) -> Any:
    """(x - mean) / (deviation + eps) of each image, or of each of its channels."""
    axes = list(range(1 if layer.parameters.across_channels else 2, len(layer.shapes[0])))
    if not axes:  # each element is the mean of itself
        return layer.call("sub", layer.x, layer.x)
    centred = layer.call("sub", layer.x, layer.call("mean", layer.x, axes, True))
    if not layer.parameters.normalize_variance:
        return centred
    deviation = layer.call("sqrt", layer.call("mean", layer.call("square", centred), axes, True))
    return layer.call("div", centred, layer.call("add", deviation, layer.number(layer.parameters.eps)))


LAYERS.layer("Softmax")(lambda layer: layer.call("softmax", layer.x, layer.parameters.axis))


@LAYERS.layer("Normalize")
def normalize(layer: LayerCall) -> Any:
    """x / sqrt(eps + sum of squares) times a scale, over each image or over the channels of each place."""
    parameters, shape = layer.parameters, layer.shapes[0]
    axes = list(range(1, len(shape))) if parameters.across_spatial else [1]
    total = layer.call("sum", layer.call("square", layer.x), axes, True)
    norm = layer.call("sqrt", layer.call("add", total, layer.number(parameters.eps)))
    made = layer.call("div", layer.x, norm)
    count = 1 if parameters.channel_shared else shape[1]
    scale = layer.blob(0, [count, *[1] * (len(shape) - 2)])
    known = layer.g.known(scale)
    return made if known is not None and np.all(known == 1) else layer.call("mul", made, scale)
