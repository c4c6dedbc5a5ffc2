"""Reduction and ArgMax."""

from __future__ import annotations

import math
from typing import Any

from tmconvert.formats.caffe.layers.layer import axis_of
from tmconvert.formats.caffe.layers.reductions import ASUM, MEAN, SUMSQ
from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()


@LAYERS.layer("Reduction")
def reduction(layer: LayerCall) -> Any:
    """Over all axes from ``axis`` on."""
    parameters, rank = layer.parameters, len(layer.shapes[0])
    axes = list(range(axis_of(parameters.axis, rank), rank))
    operation, made = parameters.operation, layer.x
    if operation in (ASUM, SUMSQ):
        made = layer.call("abs" if operation == ASUM else "square", made)
    made = layer.call("mean" if operation == MEAN else "sum", made, axes, False)
    return made if parameters.coeff == 1 else layer.call("mul", made, layer.number(parameters.coeff))


@LAYERS.layer("ArgMax")
def argmax(layer: LayerCall) -> Any:
    """The indices of the largest elements, or with ``out_max_val`` these (without an axis: both).

    Among equal ones the last comes first: Caffe sorts pairs of element and index, downwards.
    """
    parameters, shape = layer.parameters, layer.shapes[0]
    has_axis = parameters.HasField("axis")
    axis = axis_of(parameters.axis, len(shape)) if has_axis else 1
    rows = layer.x if has_axis else layer.reshaped(layer.x, [shape[0], math.prod(shape[1:])])
    largest, places = _best(layer, rows, axis, parameters.top_k)
    if parameters.out_max_val and has_axis:
        return largest
    made = places if not parameters.out_max_val else layer.call("cat", [places, largest], 1)
    return made if has_axis or layer.results is None else layer.reshaped(made, layer.results[0])


def _best(layer: LayerCall, rows: Any, axis: int, count: int) -> tuple[Any, Any]:
    """Returns the ``count`` largest elements along ``axis``, and their indices, as float32."""
    backwards = layer.call("flip", rows, [axis])
    if count == 1:
        largest = layer.call("amax", rows, [axis], True)
        places = layer.call("argmax", backwards, axis, True)
    else:
        largest, places = layer.call("topk", backwards, count, axis)
    last = layer.number(layer.g.type(rows).shape[axis] - 1)
    return largest, layer.call("sub", last, layer.call("to", places, dtype="float32"))
