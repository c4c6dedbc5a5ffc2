"""Layers that move elements without computation."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.formats.caffe.layers.layer import axis_of
from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()


def _shapes(layer: LayerCall) -> list[Any]:
    if layer.results is None:
        raise Refusal(f"a layer {layer.net_layer.type} of open sizes", "convert the net for fixed sizes")
    return list(layer.results)


LAYERS.layer("Flatten", "Reshape")(lambda layer: layer.reshaped(layer.x, _shapes(layer)[0]))


def _joined_axis(layer: LayerCall, old: str) -> int:
    parameters = layer.parameters
    axis = getattr(parameters, old) if parameters.HasField(old) else parameters.axis
    return axis_of(axis, len(layer.shapes[0]))


@LAYERS.layer("Concat")
def concat(layer: LayerCall) -> Any:
    if len(layer.bottoms) == 1:
        return layer.x
    return layer.call("cat", list(layer.bottoms), _joined_axis(layer, "concat_dim"))


@LAYERS.layer("Slice")
def slices(layer: LayerCall) -> list[Any]:
    axis, shapes = _joined_axis(layer, "slice_dim"), _shapes(layer)
    if len(shapes) == 1:
        return [layer.x]
    made: list[Any] = layer.call("split_with_sizes", layer.x, [shape[axis] for shape in shapes], axis)
    return made


LAYERS.layer("Split")(lambda layer: [layer.x] * len(layer.net_layer.tops))


@LAYERS.layer("Crop")
def crop(layer: LayerCall) -> Any:
    (wanted,) = _shapes(layer)
    axis = axis_of(layer.parameters.axis, len(wanted))
    given = list(layer.parameters.offset) or [0]
    starts = given * (len(wanted) - axis) if len(given) == 1 else given
    made = layer.x
    for at, start in enumerate(starts, axis):
        if start or wanted[at] != layer.shapes[0][at]:
            made = layer.call("slice", made, at, start, start + wanted[at], 1)
    return made


@LAYERS.layer("Tile")
def tile(layer: LayerCall) -> Any:
    rank = len(layer.shapes[0])
    counts = [1] * rank
    counts[axis_of(layer.parameters.axis, rank)] = layer.parameters.tiles
    return layer.call("repeat", layer.x, counts)


@LAYERS.layer("Permute")
def permute(layer: LayerCall) -> Any:
    order = list(layer.parameters.order)
    order += [axis for axis in range(len(layer.shapes[0])) if axis not in order]
    return layer.call("permute", layer.x, order)


@LAYERS.layer("ShuffleChannel")
def shuffle_channel(layer: LayerCall) -> Any:
    groups, shape = layer.parameters.group, layer.shapes[0]
    if len(shape) == 4:
        return layer.call("channel_shuffle", layer.x, groups)
    apart = layer.reshaped(layer.x, [shape[0], groups, shape[1] // groups, *shape[2:]])
    order = [0, 2, 1, *range(3, len(shape) + 1)]
    return layer.reshaped(layer.call("permute", apart, order), shape)


@LAYERS.layer("Reverse")
def reverse(layer: LayerCall) -> Any:
    rank = len(layer.shapes[0])
    axes = sorted({axis_of(axis, rank) for axis in layer.parameters.axis})
    return layer.call("flip", layer.x, axes)


@LAYERS.layer("BatchReindex")
def batch_reindex(layer: LayerCall) -> Any:
    places = layer.call("to", layer.bottoms[1], dtype="int64")
    return layer.call("index_select", layer.x, 0, places)


LAYERS.layer("Parameter")(lambda layer: layer.blob(0, _shapes(layer)[0]))


@LAYERS.layer("DummyData")
def dummy_data(layer: LayerCall) -> list[Any]:
    """Constants; other fillers draw random numbers."""
    parameters, count = layer.parameters, len(layer.net_layer.tops)
    shapes = [list(shape.dim) for shape in parameters.shape] or [
        list(extents)
        for extents in zip(
            parameters.num, parameters.channels, parameters.height, parameters.width, strict=False
        )
    ]
    shapes = shapes * count if len(shapes) == 1 else shapes
    fillers = list(parameters.data_filler) or [None]
    fillers = fillers * count if len(fillers) == 1 else fillers
    if len(shapes) != count or len(fillers) != count:
        raise Refusal(f"DummyData has {len(shapes)} shapes and {len(fillers)} fillers for {count} tops")
    if any(filler is not None and filler.type != "constant" for filler in fillers):
        raise Refusal("DummyData draws random numbers", "set the filler's type to constant")
    values = [0.0 if filler is None else filler.value for filler in fillers]
    return [
        layer.call("expand", layer.number(value), shape) for value, shape in zip(values, shapes, strict=True)
    ]
