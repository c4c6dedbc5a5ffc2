"""Shapes, permutations, joining and broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import axis_of, rank, reshaped, static_int, static_ints
from tmconvert.frontends.tflite.adapters.values import PREFIX, activated, scalar, stacked, without_axes
from tmconvert.frontends.tflite.data_slices import DataSlice, with_row
from tmconvert.frontends.tflite.layout import (
    ChannelsFirst,
    channels_first,
    channels_first_axis,
    known_channels_first,
)
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)


@OPERATORS.add("RESHAPE")
def reshape(g, x, shape=None, *, new_shape=None, opened=None):
    sizes = list(new_shape or []) if shape is None else static_ints(g, shape)
    if opened and (shape is None or g.known(shape) is not None):
        from tmconvert.frontends.shared.opened_sizes import opened_shape

        sizes = opened_shape(g, x, sizes, opened)
    return reshaped(g, x, sizes)


@OPERATORS.add("SQUEEZE")
def squeeze(g, x, *, squeeze_dims=None):
    shape = g.type(x).shape
    axes = [axis_of(g, x, axis) for axis in squeeze_dims or []]
    if not squeeze_dims:
        axes = [axis for axis, extent in enumerate(shape) if isinstance(extent, int) and extent == 1]
    return without_axes(g, x, axes)


@OPERATORS.add("EXPAND_DIMS")
def expand_dims(g, x, axis):
    place, count = static_int(g, axis, "an axis"), rank(g, x) + 1
    if not -count <= place < count:
        raise Refusal(f"axis {place} is out of range for a tensor of rank {count - 1}")
    shape = list(g.type(x).shape)
    shape.insert(place % count, 1)
    return g.call("aten::reshape", x, shape)


@OPERATORS.add("TRANSPOSE")
def transpose(g, x, order):
    axes = [axis_of(g, x, each) for each in static_ints(g, order, "the order of axes")]
    known = known_channels_first(g, x)
    source = x if known is None else known
    if known is not None:
        axes = [channels_first_axis(axis, rank(g, x)) for axis in axes]
    return source if axes == list(range(rank(g, x))) else g.call("aten::permute", source, axes)


@OPERATORS.add("SHAPE")
def shape_of(g, x):
    return g.constant(np.array(list(g.type(x).shape), object if _is_open(g, x) else np.int64))


def _is_open(g: Emitter, x) -> bool:
    return not all(isinstance(extent, int) for extent in g.type(x).shape)


OPERATORS.add("RANK")(lambda g, x: g.constant(rank(g, x), np.int64))


# ---- joining


@OPERATORS.add("CONCATENATION")
def concatenation(g, *xs, axis=0, fused_activation_function="NONE", opened=None):
    place = axis_of(g, next(x for x in xs if not isinstance(x, DataSlice)), axis)
    made = with_row(g, xs, place)
    if made is not None:
        return activated(g, made, fused_activation_function)
    xs = tuple(x.computed(g) if isinstance(x, DataSlice) else x for x in xs)
    if opened:
        from tmconvert.frontends.shared.opened_sizes import opened_parts

        xs = tuple(opened_parts(g, xs, place))
    if any(known_channels_first(g, x) is not None for x in xs):
        parts = [channels_first(g, x) for x in xs]
        made = ChannelsFirst(g.call("aten::cat", parts, channels_first_axis(place, rank(g, xs[0]))))
    else:
        made = xs[0] if len(xs) == 1 else g.call("aten::cat", list(xs), place)
    return activated(g, made, fused_activation_function)


@OPERATORS.add("PACK")
def pack(g, *xs, values_count, axis=0):
    count = rank(g, xs[0]) + 1
    if not -count <= axis < count or values_count != len(xs):
        raise Refusal(f"PACK has {len(xs)} inputs, but values_count is {values_count} (axis {axis})")
    return stacked(g, xs, axis % count)


@OPERATORS.add("UNPACK")
def unpack(g, x, *, num, axis=0):
    place = axis_of(g, x, axis)
    if g.type(x).shape[place] != num:
        raise Refusal(f"UNPACK has num {num}, but the axis has {g.type(x).shape[place]} elements")
    return [g.call("aten::select", x, place, number) for number in range(num)]


@OPERATORS.add("TILE")
def tile(g, x, repeats):
    counts = static_ints(g, repeats, "numbers of repeats")
    return x if set(counts) == {1} else g.call("aten::repeat", x, counts)


OPERATORS.add("BROADCAST_TO")(lambda g, x, shape: _expanded(g, x, static_ints(g, shape)))


def _expanded(g: Emitter, x, shape: list[Any]) -> Any:
    return x if list(g.type(x).shape) == shape else g.call("aten::expand", x, shape)


@OPERATORS.add("BROADCAST_ARGS")
def broadcast_args(g, first, second):
    shapes = [static_ints(g, each) for each in (first, second)]
    count = max(map(len, shapes))
    rows = [[1] * (count - len(shape)) + shape for shape in shapes]
    made = [b if isinstance(a, int) and a == 1 else a for a, b in zip(*rows, strict=True)]
    return g.constant(np.array(made, object if any(not isinstance(n, int) for n in made) else np.int64))


OPERATORS.add("FILL")(lambda g, shape, value: _expanded(g, value, static_ints(g, shape)))


@OPERATORS.add("RANGE")
def range_(g, start, limit, delta):
    if g.type(start).dtype.kind == "f":
        bounds = [scalar(g, each, "a bound of RANGE") for each in (start, limit, delta)]
        return g.constant(np.arange(*bounds, dtype=g.type(start).dtype))
    first, last, step = (static_int(g, each, "a bound of RANGE") for each in (start, limit, delta))
    return g.call("aten::arange", first, last, step)
