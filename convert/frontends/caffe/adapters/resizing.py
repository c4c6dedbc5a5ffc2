"""Layers of forks that make images larger or smaller."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.formats.caffe.layers.resizing import interp_extents
from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()


@LAYERS.layer("Interp")
def interp(layer: LayerCall) -> Any:
    """Linear along both axes; corners keep their place. Negative padding crops."""
    parameters, x = layer.parameters, layer.x
    begin, end = parameters.pad_beg, parameters.pad_end
    if begin > 0 or end > 0:
        raise Refusal("Interp takes negative padding only, which crops")
    for axis, extent in enumerate(layer.shapes[0][2:], 2):
        if begin or end:
            x = layer.call("slice", x, axis, -begin, extent + end, 1)
    extents = interp_extents(layer.net_layer, layer.shapes)
    return layer.call("upsample_bilinear2d", x, extents, True)
