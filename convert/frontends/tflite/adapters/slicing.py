"""Slices, splits and padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import axis_of, rank, reshaped, static_int, static_ints
from tmconvert.frontends.shared.indexing import getitem
from tmconvert.frontends.tflite.adapters.values import PREFIX, axes_in, scalar
from tmconvert.frontends.tflite.data_slices import data_slice, elements_of
from tmconvert.frontends.tflite.layout import (
    ChannelsFirst,
    channels_first_axis,
    in_channels_first_order,
    known_channels_first,
)
from tmconvert.ir import TensorNode
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)


@OPERATORS.add("SLICE")
def slice_(g, x, begin, size):
    """A size of -1 is all that follows."""
    if g.sizes(begin) is None or g.sizes(size) is None:
        found = data_slice(g, x, begin, size)
        if found is not None:
            return found
    starts, sizes = (static_ints(g, each, "the bounds of SLICE") for each in (begin, size))
    index = [
        slice(start, None if isinstance(count, int) and count == -1 else start + count)
        for start, count in zip(starts, sizes, strict=True)
    ]
    return _indexed(g, x, index)


def _indexed(g: Emitter, x, index: list[slice]) -> Any:
    """Slices each axis; in NCHW where the tensor is known in NCHW."""
    known = known_channels_first(g, x)
    if known is None or len(index) != rank(g, x):
        return getitem(g, x, tuple(index))
    return ChannelsFirst(getitem(g, known, tuple(in_channels_first_order(index))))


@OPERATORS.add("STRIDED_SLICE")
def strided_slice(
    g, x, begin, end, strides,
    *, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0, offset=False,
):  # fmt: skip
    what = "the bounds of STRIDED_SLICE"
    starts, ends = (elements_of(g, each) or static_ints(g, each, what) for each in (begin, end))
    index: list[Any] = []
    for place, (start, stop, step) in enumerate(
        zip(starts, ends, static_ints(g, strides, what), strict=True)
    ):
        bit = 1 << place
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(reshaped(g, start, []) if isinstance(start, TensorNode) else start)
        else:
            first = None if begin_mask & bit and not offset else static_int(g, start, what)
            last = None if end_mask & bit else static_int(g, stop, what) + (first if offset else 0)
            index.append(slice(None if begin_mask & bit else first, last, step))
    if all(isinstance(each, slice) for each in index):
        return _indexed(g, x, index)
    return getitem(g, x, tuple(index), numbers_first=True)


# ---- splits


@OPERATORS.add("SPLIT")
def split(g, axis, x, *, num_splits):
    place = axis_of(g, x, axis)
    extent = g.type(x).shape[place]
    if num_splits < 1 or extent % num_splits:
        raise Refusal(f"an axis of {extent} elements cannot be split into {num_splits} equal parts")
    return _parts(g, x, [extent // num_splits] * num_splits, place)


@OPERATORS.add("SPLIT_V")
def split_v(g, x, sizes, axis, *, num_splits):
    place = axis_of(g, x, axis)
    parts = static_ints(g, sizes, "the sizes of SPLIT_V")
    if parts.count(-1) == 1:
        rest = sum(size for size in parts if size != -1)
        parts[parts.index(-1)] = g.type(x).shape[place] - rest
    return _parts(g, x, parts, place)


def _parts(g: Emitter, x, sizes: list[Any], axis: int) -> list[Any]:
    if len(sizes) == 1:
        return [x]
    known = known_channels_first(g, x)
    if known is None:
        return list(g.call("aten::split_with_sizes", x, sizes, axis))
    made = g.call("aten::split_with_sizes", known, sizes, channels_first_axis(axis, rank(g, x)))
    return [ChannelsFirst(each) for each in made]


# ---- padding


@OPERATORS.add("PAD")
def pad(g, x, paddings):
    return _padded(g, x, paddings, "constant", 0)


@OPERATORS.add("PADV2")
def padv2(g, x, paddings, value):
    return _padded(g, x, paddings, "constant", scalar(g, value, "the value of PADV2"))


@OPERATORS.add("MIRROR_PAD")
def mirror_pad(g, x, paddings, *, mode):
    """SYMMETRIC repeats the last element, which is what "replicate" does with one."""
    if mode == "REFLECT":
        return _padded(g, x, paddings, "reflect", 0)
    amounts = static_ints(g, paddings, "the padding")
    if all(isinstance(each, int) and 0 <= each <= 1 for each in amounts):
        return _padded(g, x, paddings, "replicate", 0)
    made: Any = x
    for axis in range(rank(g, x)):
        before, after = amounts[2 * axis], amounts[2 * axis + 1]
        extent = g.type(made).shape[axis]
        parts = [made]
        if before:
            parts.insert(0, g.call("aten::flip", g.call("aten::slice", made, axis, 0, before, 1), [axis]))
        if after:
            last = g.call("aten::slice", made, axis, extent - after, extent, 1)
            parts.append(g.call("aten::flip", last, [axis]))
        made = parts[0] if len(parts) == 1 else g.call("aten::cat", parts, axis)
    return made


def _padded(g: Emitter, x, paddings, mode: str, value) -> Any:
    amounts = static_ints(g, paddings, "the padding")
    if len(amounts) != 2 * rank(g, x):
        raise Refusal(f"a tensor of {rank(g, x)} axes has {len(amounts)} amounts of padding")
    number = value if g.type(x).dtype.kind == "f" else int(value)
    known = known_channels_first(g, x)
    if known is None:
        return g.call("aten::pad", x, amounts, mode, number)
    pairs = in_channels_first_order([amounts[2 * axis : 2 * axis + 2] for axis in range(rank(g, x))])
    return ChannelsFirst(g.call("aten::pad", known, [each for pair in pairs for each in pair], mode, number))


OPERATORS.add("REVERSE_V2")(lambda g, x, axes: g.call("aten::flip", x, axes_in(g, x, axes)))


@OPERATORS.add("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(g, x, update, start):
    """The start is moved so that the update lies within ``x``."""
    starts = static_ints(g, start, "the start of an update")
    sizes, extents = g.type(update).shape, g.type(x).shape
    places = [
        int(np.clip(first, 0, extent - size))
        for first, size, extent in zip(starts, sizes, extents, strict=True)
    ]
    made: Any = update
    for axis in reversed(range(rank(g, x))):
        # the part of x that the update has along this axis, at the places of the axes before
        outer: Any = x
        for before in range(axis):
            outer = g.call("aten::slice", outer, before, places[before], places[before] + sizes[before], 1)
        made = g.call("aten::slice_scatter", outer, made, axis, places[axis], places[axis] + sizes[axis], 1)
    return made
