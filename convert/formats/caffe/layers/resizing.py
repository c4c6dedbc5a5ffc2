"""Layers of forks that make images larger or smaller."""

from __future__ import annotations

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape
from tmconvert.formats.caffe.net import NetLayer


def interp_extents(layer: NetLayer, bottoms: list[Shape]) -> list[int]:
    """Height and width are given, or by factors: first shrunk, then enlarged, between corners."""
    parameters = layer.parameters
    extents = [extent + parameters.pad_beg + parameters.pad_end for extent in bottoms[0][2:]]
    if parameters.height and parameters.width:
        return [parameters.height, parameters.width]
    if len(bottoms) == 2:
        return list(bottoms[1][2:])
    extents = [(extent - 1) // parameters.shrink_factor + 1 for extent in extents]
    return [extent + (extent - 1) * (parameters.zoom_factor - 1) for extent in extents]


def _interp_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    if len(bottoms[0]) != 4 or layer.parameters.shrink_factor < 1 or layer.parameters.zoom_factor < 1:
        raise ValueError(f"a blob of {len(bottoms[0])} axes, or a factor below 1")
    return [(*bottoms[0][:2], *interp_extents(layer, bottoms))]


def _interp(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """Linear along both axes; corners keep their place."""
    x = bottoms[0]
    if layer.parameters.pad_beg or layer.parameters.pad_end:
        raise ValueError("Interp with padding is not supported")
    for axis, extent in zip((2, 3), interp_extents(layer, [bottom.shape for bottom in bottoms]), strict=True):
        at = np.arange(extent) * ((x.shape[axis] - 1) / (extent - 1) if extent > 1 else 0.0)
        low = np.minimum(at.astype(np.int64), x.shape[axis] - 1)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        share = (at - low).reshape(-1, *(1,) * (3 - axis))
        x = x.take(low, axis) * (1 - share) + x.take(high, axis) * share
    return [np.asarray(x, np.float32)]


LAYERS = {
    "Interp": Layer(
        _interp_shape, _interp, bottoms=(1, 2), parameters="interp_param", is_of_fork=True, is_spatial=True
    )
}
