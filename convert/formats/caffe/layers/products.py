"""Layers that multiply by weights, or by another blob of fewer axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape, axis_of
from tmconvert.formats.caffe.net import NetLayer


def _inner_product_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape = bottoms[0]
    if not layer.parameters.num_output:
        raise ValueError("num_output is missing")
    return [(*shape[: axis_of(layer.parameters.axis, len(shape))], layer.parameters.num_output)]


def _inner_product(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """All axes from ``axis`` on, as one, times the weights [outputs, inputs] (the reverse with transpose)."""
    x, parameters = bottoms[0], layer.parameters
    (shape,) = _inner_product_shape(layer, [x.shape])
    axis = len(shape) - 1
    rows = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    weight = layer.blobs[0].reshape(layer.blobs[0].shape[-2:])
    made = rows @ (weight if parameters.transpose else weight.T)
    if parameters.bias_term:
        made = made + layer.blobs[1].reshape(-1)
    return [made.reshape(shape)]


def _embed_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    if not layer.parameters.num_output or not layer.parameters.input_dim:
        raise ValueError("num_output or input_dim is missing")
    return [(*bottoms[0], layer.parameters.num_output)]


def _embed(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """Rows of the table [input_dim, num_output]; the indices are floats."""
    indices = bottoms[0].astype(np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < layer.parameters.input_dim:
        raise ValueError(f"indices are out of range for {layer.parameters.input_dim} rows")
    made = layer.blobs[0].reshape(layer.parameters.input_dim, layer.parameters.num_output)[indices]
    return [made + layer.blobs[1].reshape(-1) if layer.parameters.bias_term else made]


def covered(layer: NetLayer, bottoms: list[Shape]) -> tuple[int, Shape]:
    """The axis from which on the second operand of a Scale or a Bias is spread, and its shape."""
    shape, parameters = bottoms[0], layer.parameters
    if len(bottoms) == 2:
        axis = 0 if not bottoms[1] else axis_of(parameters.axis, len(shape))
        block = bottoms[1]
    else:
        axis = axis_of(parameters.axis, len(shape))
        end = len(shape) if parameters.num_axes == -1 else axis + parameters.num_axes
        if end > len(shape):
            raise ValueError(f"axes {axis} to {end} are out of range for a blob of {len(shape)} axes")
        block = shape[axis:end]
    if shape[axis : axis + len(block)] != block:
        raise ValueError(f"{list(block)} does not fit {list(shape)} from axis {axis} on")
    return axis, block


def _spread(layer: NetLayer, shapes: list[Shape], factor: np.ndarray) -> np.ndarray:
    axis, block = covered(layer, shapes)
    return factor.reshape(*block, *(1,) * (len(shapes[0]) - axis - len(block)))


def _covered_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    covered(layer, bottoms)
    return [bottoms[0]]


def _scale(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    shapes = [bottom.shape for bottom in bottoms]
    blobs = list(layer.blobs)
    factor = bottoms[1] if len(bottoms) == 2 else blobs.pop(0)
    made = bottoms[0] * _spread(layer, shapes, factor)
    return [made + _spread(layer, shapes, blobs[0]) if layer.parameters.bias_term else made]


def _bias(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    shapes = [bottom.shape for bottom in bottoms]
    return [bottoms[0] + _spread(layer, shapes, bottoms[1] if len(bottoms) == 2 else layer.blobs[0])]


def _macs(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return math.prod(outputs[0]) * math.prod(inputs[1]) // max(outputs[0][-1], 1)


LAYERS = {
    "Bias": Layer(_covered_shape, _bias, bottoms=(1, 2), overwrites=True, parameters="bias_param"),
    "Embed": Layer(_embed_shape, _embed, parameters="embed_param"),
    "InnerProduct": Layer(
        _inner_product_shape, _inner_product, parameters="inner_product_param", weight_axis=0, macs=_macs
    ),
    "Scale": Layer(_covered_shape, _scale, bottoms=(1, 2), overwrites=True, parameters="scale_param"),
}
