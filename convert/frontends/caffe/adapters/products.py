"""Layers that multiply by weights, or by another blob of fewer axes."""

from __future__ import annotations

import math
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.formats.caffe.layers.layer import axis_of
from tmconvert.formats.caffe.layers.products import covered
from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()


@LAYERS.layer("InnerProduct")
def inner_product(layer: LayerCall) -> Any:
    """All axes from ``axis`` on, as one, times the weights [outputs, inputs] (the reverse with transpose)."""
    parameters, shape = layer.parameters, layer.shapes[0]
    axis = axis_of(parameters.axis, len(shape))
    inputs, outputs = math.prod(shape[axis:]), parameters.num_output
    if parameters.transpose:
        weight = layer.call("permute", layer.blob(0, [inputs, outputs]), [1, 0])
    else:
        weight = layer.blob(0, [outputs, inputs])
    bias = layer.blob(1, [outputs]) if parameters.bias_term else None
    # aten multiplies rows of at least one axis
    rows = layer.reshaped(layer.x, [*(shape[:axis] or [1]), inputs])
    made = layer.call("linear", rows, weight, bias)
    return made if axis else layer.reshaped(made, [outputs])


@LAYERS.layer("Embed")
def embed(layer: LayerCall) -> Any:
    parameters = layer.parameters
    table = layer.blob(0, [parameters.input_dim, parameters.num_output])
    made = layer.call("embedding", table, layer.call("to", layer.x, dtype="int64"))
    return layer.call("add", made, layer.blob(1, [parameters.num_output])) if parameters.bias_term else made


def _spread(layer: LayerCall, index: int) -> Any:
    """Returns the second bottom, or blob ``index``, in a shape that is broadcast to that of the first."""
    axis, block = covered(layer.net_layer, layer.shapes)
    shape = [*block, *[1] * (len(layer.shapes[0]) - axis - len(block))]
    return layer.blob(index, shape) if index >= 0 else layer.reshaped(layer.bottoms[1], shape)


@LAYERS.layer("Scale")
def scale(layer: LayerCall) -> Any:
    is_stored = len(layer.bottoms) == 1
    made = layer.call("mul", layer.x, _spread(layer, 0 if is_stored else -1))
    return layer.call("add", made, _spread(layer, int(is_stored))) if layer.parameters.bias_term else made


@LAYERS.layer("Bias")
def bias(layer: LayerCall) -> Any:
    return layer.call("add", layer.x, _spread(layer, 0 if len(layer.bottoms) == 1 else -1))


@LAYERS.layer("Axpy")
def axpy(layer: LayerCall) -> Any:
    """Multiplies each channel of the second bottom by the first, and adds the third.

    Source: axpy_layer.hpp of SENet's fork. OpenCV 4.14 multiplies the third, and adds the second.
    """
    count = math.prod(layer.shapes[1][:2])
    if math.prod(layer.shapes[0]) != count or layer.shapes[1] != layer.shapes[2]:
        raise Refusal(f"Axpy of {', '.join(str(list(shape)) for shape in layer.shapes)}")
    factor = layer.reshaped(layer.x, [*layer.shapes[1][:2], *[1] * (len(layer.shapes[1]) - 2)])
    return layer.call("add", layer.call("mul", layer.bottoms[1], factor), layer.bottoms[2])


LAYERS.layer("MatMul")(lambda layer: layer.call("matmul", *layer.bottoms))


@LAYERS.layer("BatchedMatMul")
def batched_matmul(layer: LayerCall) -> Any:
    flags = (layer.parameters.adj_x1, layer.parameters.adj_x2)
    operands = [
        _transposed(layer, x, len(shape)) if flag else x
        for x, shape, flag in zip(layer.bottoms, layer.shapes, flags, strict=True)
    ]
    return layer.call("matmul", *operands)


def _transposed(layer: LayerCall, x: Any, rank: int) -> Any:
    return layer.call("permute", x, [*range(rank - 2), rank - 1, rank - 2])
