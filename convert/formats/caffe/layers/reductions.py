"""Reduction and ArgMax."""

from __future__ import annotations

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape, axis_of
from tmconvert.formats.caffe.net import NetLayer

SUM, ASUM, SUMSQ, MEAN = 1, 2, 3, 4  # ReductionOp


def _reduction_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    return [bottoms[0][: axis_of(layer.parameters.axis, len(bottoms[0]))]]


def _reduction(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """Over all axes from ``axis`` on."""
    parameters = layer.parameters
    (shape,) = _reduction_shape(layer, [bottoms[0].shape])
    rows = bottoms[0].reshape(*shape, -1).astype(np.float64)
    if parameters.operation == ASUM:
        rows = np.abs(rows)
    elif parameters.operation == SUMSQ:
        rows = np.square(rows)
    made = rows.mean(-1) if parameters.operation == MEAN else rows.sum(-1)
    return [np.asarray(made * parameters.coeff, np.float32)]


def _argmax_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    """Along an axis ``top_k`` elements; else [N, 1 or 2, top_k] with trailing ones, up to the rank."""
    shape, parameters = bottoms[0], layer.parameters
    if parameters.HasField("axis"):
        axis = axis_of(parameters.axis, len(shape))
        return [(*shape[:axis], parameters.top_k, *shape[axis + 1 :])]
    ones = (1,) * (len(shape) - 3)
    return [(shape[0], 2 if parameters.out_max_val else 1, parameters.top_k, *ones)]


def _argmax(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """The indices of the largest elements, or with ``out_max_val`` these (without an axis: both).

    Among equal ones the last comes first: BVLC sorts pairs of element and index, downwards.
    """
    x, parameters = bottoms[0], layer.parameters
    (shape,) = _argmax_shape(layer, [x.shape])
    axis = parameters.axis if parameters.HasField("axis") else 1
    rows = x if parameters.HasField("axis") else x.reshape(len(x), -1)
    backwards = np.flip(np.argsort(rows, axis, kind="stable"), axis)
    best = backwards.take(range(parameters.top_k), axis)
    largest = np.take_along_axis(rows, best, axis)
    if not parameters.out_max_val:
        made = best
    elif parameters.HasField("axis"):
        made = largest
    else:
        made = np.stack([best.astype(np.float32), largest], 1)
    return [np.asarray(made, np.float32).reshape(shape)]


LAYERS = {
    "ArgMax": Layer(_argmax_shape, _argmax, parameters="argmax_param"),
    "Reduction": Layer(_reduction_shape, _reduction, parameters="reduction_param"),
}
