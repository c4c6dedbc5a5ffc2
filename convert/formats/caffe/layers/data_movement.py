"""Layers that move elements and compute nothing."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape, Shapes, axis_of, same_shape
from tmconvert.formats.caffe.net import NetLayer, input_shapes


def _moved(shapes: Shapes, **facts: Any) -> Layer:
    """A layer that gives the elements of its bottom, in their order, other shapes."""

    def run(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
        return [bottoms[0].reshape(shape) for shape in shapes(layer, [bottoms[0].shape])]

    return Layer(shapes, run, **facts)


def _flatten_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape = bottoms[0]
    first = axis_of(layer.parameters.axis, len(shape))
    last = axis_of(layer.parameters.end_axis, len(shape))
    if last < first:
        raise ValueError(f"axes {first} to {last}")
    return [(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])]


def _reshape_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    """0 copies an extent, -1 takes what is left; only the axes from ``axis`` on, ``num_axes`` of them."""
    shape, parameters = bottoms[0], layer.parameters
    first = parameters.axis if parameters.axis >= 0 else parameters.axis + len(shape) + 1
    end = len(shape) if parameters.num_axes == -1 else first + parameters.num_axes
    if not 0 <= first <= end <= len(shape):
        raise ValueError(f"axes {first} to {end} are out of range for a blob of {len(shape)} axes")
    extents = list(parameters.shape.dim)
    for index, extent in enumerate(extents):
        if extent == 0:
            if first + index >= len(shape):
                raise ValueError(f"there is no axis {first + index} to copy")
            extents[index] = shape[first + index]
    if extents.count(-1) > 1:
        raise ValueError("more than one size is -1")
    wanted, known = math.prod(shape[first:end]), math.prod(extent for extent in extents if extent != -1)
    if -1 in extents:
        extents[extents.index(-1)] = wanted // known if known and wanted % known == 0 else -1
    if math.prod(extents) != wanted or min(extents, default=1) < 0:
        raise ValueError(f"{list(shape)} does not fit into {list(parameters.shape.dim)}")
    return [(*shape[:first], *extents, *shape[end:])]


def _split_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    return [bottoms[0]] * len(layer.tops)


def _joined_axis(parameters: Any, old: str, rank: int) -> int:
    """``axis``, or what old nets call ``concat_dim`` or ``slice_dim``."""
    return axis_of(getattr(parameters, old) if parameters.HasField(old) else parameters.axis, rank)


def _concat_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    axis = _joined_axis(layer.parameters, "concat_dim", len(bottoms[0]))
    rest = {(*shape[:axis], *shape[axis + 1 :]) for shape in bottoms}
    if len(rest) > 1 or any(len(shape) != len(bottoms[0]) for shape in bottoms):
        raise ValueError(f"{', '.join(map(str, map(list, bottoms)))} cannot be joined along axis {axis}")
    first = bottoms[0]
    return [(*first[:axis], sum(shape[axis] for shape in bottoms), *first[axis + 1 :])]


def _concat(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    return [np.concatenate(bottoms, _joined_axis(layer.parameters, "concat_dim", bottoms[0].ndim))]


def _cuts(layer: NetLayer, shape: Shape) -> tuple[int, list[int]]:
    """Returns the axis, and the positions of the cuts: equal parts by default."""
    axis = _joined_axis(layer.parameters, "slice_dim", len(shape))
    points, parts = list(layer.parameters.slice_point), len(layer.tops)
    if not points:
        if shape[axis] % parts:
            raise ValueError(f"{shape[axis]} elements cannot be split into {parts} equal parts")
        points = [shape[axis] // parts * part for part in range(1, parts)]
    bounds = [0, *points, shape[axis]]
    if len(points) != parts - 1 or any(b <= a for a, b in pairwise(bounds)):
        raise ValueError(f"slice points {points} do not split {shape[axis]} elements into {parts} parts")
    return axis, points


def _slice_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape = bottoms[0]
    axis, points = _cuts(layer, shape)
    bounds = [0, *points, shape[axis]]
    return [(*shape[:axis], b - a, *shape[axis + 1 :]) for a, b in pairwise(bounds)]


def _slice(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    axis, points = _cuts(layer, bottoms[0].shape)
    return np.split(bottoms[0], points, axis)


def _crop_starts(layer: NetLayer, shape: Shape, like: Shape) -> list[int]:
    """Where the part begins that has the shape of ``like`` from ``axis`` on."""
    if len(shape) != len(like):
        raise ValueError(f"{list(shape)} cannot be cropped to {list(like)}")
    axis = axis_of(layer.parameters.axis, len(shape))
    count, offsets = len(shape) - axis, list(layer.parameters.offset) or [0]
    if len(offsets) not in (1, count):
        raise ValueError(f"expected {count} offsets, got {len(offsets)}")
    starts = [0] * axis + (offsets * count if len(offsets) == 1 else offsets)
    for at in range(axis, len(shape)):
        if starts[at] + like[at] > shape[at]:
            raise ValueError(f"{like[at]} elements from {starts[at]} on, of {shape[at]}")
    return starts


def _crop_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape, like = bottoms
    _crop_starts(layer, shape, like)
    axis = axis_of(layer.parameters.axis, len(shape))
    return [(*shape[:axis], *like[axis:])]


def _crop(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    shapes = [bottom.shape for bottom in bottoms]
    starts, (wanted,) = _crop_starts(layer, *shapes), _crop_shape(layer, shapes)
    return [bottoms[0][tuple(slice(start, start + size) for start, size in zip(starts, wanted, strict=True))]]


def _tile_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape, axis = bottoms[0], axis_of(layer.parameters.axis, len(bottoms[0]))
    if layer.parameters.tiles < 1:
        raise ValueError(f"{layer.parameters.tiles} tiles")
    return [(*shape[:axis], shape[axis] * layer.parameters.tiles, *shape[axis + 1 :])]


def _tile(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    return [np.concatenate([bottoms[0]] * layer.parameters.tiles, layer.parameters.axis)]


def _order(layer: NetLayer, rank: int) -> list[int]:
    """The order of a Permute; axes that it does not name follow."""
    order = list(layer.parameters.order)
    order += [axis for axis in range(rank) if axis not in order]
    if sorted(order) != list(range(rank)):
        raise ValueError(f"order {order} is not a permutation of the axes of a blob of rank {rank}")
    return order


def _permute_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    return [tuple(bottoms[0][axis] for axis in _order(layer, len(bottoms[0])))]


def _permute(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    return [bottoms[0].transpose(_order(layer, bottoms[0].ndim))]


def _shuffle_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    if not layer.parameters.group or bottoms[0][1] % layer.parameters.group:
        raise ValueError(f"group {layer.parameters.group} does not divide {bottoms[0][1]} channels")
    return [bottoms[0]]


def _shuffle(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """Channel c of group g becomes channel g of group c."""
    x = bottoms[0]
    groups = x.reshape(x.shape[0], layer.parameters.group, -1, *x.shape[2:])
    return [groups.swapaxes(1, 2).reshape(x.shape)]


def _reverse(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    return [np.flip(bottoms[0], tuple(layer.parameters.axis))]


def _reindexed_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape, order = bottoms
    if len(order) != 1:
        raise ValueError(f"the indices of Reverse must have 1 axis, got {len(order)}")
    return [(*order, *shape[1:])]


def _reindexed(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    return [bottoms[0][bottoms[1].astype(np.int64)]]


def _parameter_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    return [tuple(layer.parameters.shape.dim)]


def _parameter(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    return [layer.blobs[0].reshape(tuple(layer.parameters.shape.dim))]


def _input_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shapes = list(input_shapes(layer))
    if len(shapes) != len(layer.tops):
        raise ValueError(f"{len(shapes)} shapes for {len(layer.tops)} inputs")
    return shapes


def _fed(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    raise ValueError("the blobs of an Input layer are not computed")


LAYERS = {
    "BatchReindex": Layer(_reindexed_shape, _reindexed, bottoms=(2, 2)),
    "Concat": Layer(_concat_shape, _concat, bottoms=(1, None), parameters="concat_param"),
    "Crop": Layer(_crop_shape, _crop, bottoms=(2, 2), parameters="crop_param", is_spatial=True),
    "Flatten": _moved(_flatten_shape, parameters="flatten_param", keeps_qparams=True),
    "Input": Layer(_input_shape, _fed, bottoms=(0, 0), tops=(1, None), parameters="input_param"),
    "Parameter": Layer(_parameter_shape, _parameter, bottoms=(0, 0), parameters="parameter_param"),
    "Permute": Layer(
        _permute_shape, _permute, parameters="permute_param", is_of_fork=True, keeps_qparams=True
    ),
    "Reshape": _moved(_reshape_shape, parameters="reshape_param", keeps_qparams=True),
    "Reverse": Layer(same_shape, _reverse, parameters="reverse_param", is_of_fork=True),
    "ShuffleChannel": Layer(_shuffle_shape, _shuffle, parameters="shuffle_channel_param", is_of_fork=True),
    "Silence": Layer(lambda layer, bottoms: [], lambda layer, bottoms: [], (1, None), (0, 0)),
    "Slice": Layer(_slice_shape, _slice, tops=(1, None), parameters="slice_param", keeps_qparams=True),
    "Split": Layer(
        _split_shape, lambda layer, bottoms: bottoms * len(layer.tops), tops=(1, None), keeps_qparams=True
    ),
    "Tile": Layer(_tile_shape, _tile, parameters="tile_param"),
}
