"""Normalization layers."""

from __future__ import annotations

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape, axis_of, same_shape
from tmconvert.formats.caffe.net import NetLayer


def _batch_norm(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """(x - mean) / sqrt(variance + eps); both are stored as sums, with the factor to divide them by."""
    x = bottoms[0].astype(np.float64)
    column = (-1, *(1,) * (x.ndim - 2))
    if layer.parameters.HasField("use_global_stats") and not layer.parameters.use_global_stats:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        mean, variance = x.mean(axes), x.var(axes)
    else:
        factor = float(layer.blobs[2].reshape(-1)[0])
        share = 0.0 if factor == 0 else 1 / factor
        mean, variance = (blob.reshape(-1).astype(np.float64) * share for blob in layer.blobs[:2])
    scaled = (x - mean.reshape(column)) / np.sqrt(variance + layer.parameters.eps).reshape(column)
    return [np.asarray(scaled, np.float32)]


def _mvn(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """(x - mean) / (deviation + eps) of each image, or of each of its channels."""
    x = bottoms[0].astype(np.float64)
    axes = tuple(range(1 if layer.parameters.across_channels else 2, x.ndim))
    centred = x - x.mean(axes, keepdims=True)
    if layer.parameters.normalize_variance:
        deviation = np.sqrt(np.square(centred).mean(axes, keepdims=True))
        centred = centred / (deviation + layer.parameters.eps)
    return [np.asarray(centred, np.float32)]


def _softmax_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    axis_of(layer.parameters.axis, len(bottoms[0]))
    return [bottoms[0]]


def _softmax(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    axis = layer.parameters.axis
    powers = np.exp(bottoms[0] - bottoms[0].max(axis, keepdims=True))
    return [powers / powers.sum(axis, keepdims=True)]


def _normalize(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """x / sqrt(eps + sum of squares) times a scale, over each image or over the channels of each position."""
    x = bottoms[0].astype(np.float64)
    axes = tuple(range(1, x.ndim)) if layer.parameters.across_spatial else (1,)
    norm = np.sqrt(np.square(x).sum(axes, keepdims=True) + layer.parameters.eps)
    scale = layer.blobs[0].reshape(-1, *(1,) * (x.ndim - 2)) if layer.blobs else 1.0
    return [np.asarray(x / norm * scale, np.float32)]


LAYERS = {
    "BatchNorm": Layer(
        same_shape, _batch_norm, overwrites=True, parameters="batch_norm_param", is_spatial=True
    ),
    "MVN": Layer(same_shape, _mvn, parameters="mvn_param"),
    "Normalize": Layer(same_shape, _normalize, parameters="norm_param", is_of_fork=True),
    "Softmax": Layer(_softmax_shape, _softmax, overwrites=True, parameters="softmax_param"),
}
