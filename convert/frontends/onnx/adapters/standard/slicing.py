"""Slices, splits, concatenation and padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.unsigned import SIGNED
from tmconvert.frontends.onnx.adapters.standard.windows import is_zero
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, rank, scalar, static_int, static_ints
from tmconvert.frontends.shared.indexing import getitem
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.clamps import maximum, minimum
from tmconvert.ir.symbolic.dims import is_symbolic

OPERATORS = OperatorTable()
_LARGEST = 2**31 - 1
BEYOND = 10**9  # elements that no axis has


@OPERATORS.add("Slice", since=10)
def slice10(g, data, starts, ends, axes=None, steps=None):
    count = g.type(starts).size
    places = list(range(count)) if axes is None else static_ints(g, axes, "the axes of Slice")
    strides = [1] * count if steps is None else static_ints(g, steps, "the steps of Slice")
    first, last = (_bounds(g, data, each, places, strides) for each in (starts, ends))
    return _sliced(g, data, first, last, places, strides)


def _bounds(g: Emitter, x, bounds, axes: list[int], steps: list[int]) -> list[Any]:
    """Returns bounds of slices; those that are computed from the data count from the beginning then.

    One before the first element is this element, and before it if the axis is reversed.
    """
    if g.sizes(bounds) is not None:
        return static_ints(g, bounds, "the bounds of Slice")
    found = []
    for number, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        bound = g.call("aten::slice", cast(g, bounds, np.int64), 0, number, number + 1, 1)
        size = g.type(x).shape[axis_of(g, x, axis)]
        extent, zero = g.constant([size], np.int64), g.constant([0], np.int64)
        from_end = g.call("aten::add", bound, extent)
        is_negative = g.call("aten::lt", bound, g.constant(0, np.int64))
        wrapped = g.call("aten::where", is_negative, from_end, bound)
        if step < 0:
            wrapped = g.call("aten::sub", g.call("aten::sub", extent, g.constant([1], np.int64)), wrapped)
        least = static_int(g, g.call("aten::maximum", wrapped, zero), "a bound of Slice")
        found.append(size - 1 - least if step < 0 else least)
    return found


@OPERATORS.add("Slice")
def slice1(g, data, *, starts, ends, axes=None):
    places = list(range(len(starts))) if axes is None else list(axes)
    return _sliced(g, data, list(starts), list(ends), places, [1] * len(starts))


def _sliced(g: Emitter, x, starts: list[Any], ends: list[Any], axes: list[int], steps: list[int]) -> Any:
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Refusal("starts, ends, axes and steps of a Slice differ in length")
    index: list[Any] = [slice(None)] * rank(g, x)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = axis_of(g, x, axis)
        extent = g.type(x).shape[place]
        first, last = _within(start, end, step)
        if step < 0 and is_symbolic((first, last, extent)):
            x = g.call("aten::flip", x, [place])
            start = minimum(_mirrored(first, extent), extent - 1) if first is not None else None
            index[place] = slice(start, _mirrored(last, extent), -step)
            continue
        if step < 0 and first is not None:  # one before the first element is this element
            first = max(first, -extent)
        # exporters write such ends for "to the last element", also of an axis whose size is open
        is_whole = step > 0 and isinstance(last, int) and last >= BEYOND and is_symbolic(extent)
        index[place] = slice(first, None if is_whole else last, step)
    return getitem(g, x, tuple(index))


def _mirrored(bound: Any, extent: Any) -> Any:
    """Returns a bound in the reversed axis; one before its first element is this element."""
    if bound is None:
        return None
    return -1 - bound if type(bound) is int and bound < 0 else maximum(extent - 1 - bound, 0)


def _within(start: Any, end: Any, step: int) -> tuple[Any, Any]:
    """Returns the bounds of a slice, None for those at the ends of the axis, whatever its size.

    Exporters write these as the largest or smallest integer, and the start of a reversed axis as -1.
    """
    is_first = type(start) is int and (start <= -_LARGEST if step > 0 else start == -1 or start >= _LARGEST)
    is_last = type(end) is int and (end >= _LARGEST if step > 0 else end <= -_LARGEST)
    return None if is_first else start, None if is_last else end


@OPERATORS.add("Concat", since=4)
def concat(g, *inputs, axis, opened=None):
    if len(inputs) == 1:
        return inputs[0]
    parts, place = list(inputs), axis_of(g, inputs[0], axis)
    if opened:
        from tmconvert.frontends.shared.opened_sizes import opened_parts

        parts = opened_parts(g, parts, place)
    return g.call("aten::cat", parts, place)


OPERATORS.add("Concat")(lambda g, *inputs, axis=1, opened=None: concat(g, *inputs, axis=axis, opened=opened))


@OPERATORS.add("Split", since=13)
def split(g, input, split=None, *, axis=0, num_outputs=None):
    sizes = None if split is None else static_ints(g, split, "the sizes of Split")
    return lambda count: _parts(g, input, sizes, axis, count)


@OPERATORS.add("Split")
def split1(g, input, split=None, *, axis=0, **given):
    sizes = static_ints(g, split, "the sizes of Split") if split is not None else None
    return lambda count: _parts(g, input, sizes, axis, count)


def _parts(g: Emitter, x, sizes: list[Any] | None, axis: int, count: int) -> list[Any]:
    """Returns parts of the given sizes, or of equal ones of which the last may be smaller."""
    place = axis_of(g, x, axis)
    extent = g.type(x).shape[place]
    if sizes is None:
        each = -(-extent // count)
        sizes = [each] * (count - 1) + [extent - each * (count - 1)]
    if count == 1:
        return [x]
    made = g.call("aten::split_with_sizes", x, sizes, place)
    return list(made) if isinstance(made, (list, tuple)) else [made]


# ---- padding


@OPERATORS.add("Pad", since=11)
def pad(g, data, pads, constant_value=None, axes=None, *, mode="constant"):
    sizes = static_ints(g, pads, "the sizes of Pad")
    value = 0 if constant_value is None else scalar(g, constant_value, "the value of Pad")
    places = range(rank(g, data)) if axes is None else static_ints(g, axes, "the axes of Pad")
    return _padded(g, data, sizes, [axis_of(g, data, axis) for axis in places], mode, value)


@OPERATORS.add("Pad", since=2)
def pad2(g, data, *, pads, mode="constant", value=0.0):
    return _padded(g, data, list(pads), list(range(rank(g, data))), mode, value)


@OPERATORS.add("Pad")
def pad1(g, data, *, paddings, mode="constant", value=0.0):
    return _padded(g, data, list(paddings), list(range(rank(g, data))), mode, value)


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "wrap"}


def _padded(g: Emitter, x, sizes: list[Any], axes: list[int], mode: str, value) -> Any:
    """Removes what negative sizes cut, then pads."""
    dtype = g.type(x).dtype
    if dtype.name in SIGNED:
        signed = np.dtype(SIGNED[dtype.name])
        fill = np.asarray(value).astype(dtype).astype(signed).item()
        return cast(g, _padded(g, cast(g, x, signed), sizes, axes, mode, fill), dtype)
    if len(sizes) != 2 * len(axes) or mode not in _MODES:
        raise Refusal(f"Pad has {len(sizes)} sizes for {len(axes)} axes, in mode {mode!r}")
    begin: list[Any] = [0] * rank(g, x)
    end: list[Any] = [0] * rank(g, x)
    for place, axis in enumerate(axes):
        begin[axis], end[axis] = sizes[place], sizes[place + len(axes)]
    index = tuple(
        slice(maximum(-first, 0), g.type(x).shape[axis] - maximum(-last, 0))
        for axis, (first, last) in enumerate(zip(begin, end, strict=True))
    )
    if any(size < 0 for size in sizes):
        x = getitem(g, x, index)
    begin, end = ([maximum(each, 0) for each in sizes] for sizes in (begin, end))
    if is_zero(begin) and is_zero(end):
        return x
    pairs = [each for pair in zip(begin, end, strict=True) for each in pair]
    if mode == "constant":
        return g.call("aten::pad", x, pairs, "constant", int(value) if dtype.kind == "b" else value)
    extents = zip(g.type(x).shape, begin, end, strict=True)
    if mode == "edge" or (mode == "reflect" and all(max(ends) < extent for extent, *ends in extents)):
        return g.call("aten::pad", x, pairs, _MODES[mode])
    return _repeated(g, x, begin, end, mode)


def _repeated(g: Emitter, x, begin: list[Any], end: list[Any], mode: str) -> Any:
    """Pads with elements of the tensor, one axis after the other."""
    for axis, (first, last) in enumerate(zip(begin, end, strict=True)):
        if is_zero([first, last]):
            continue
        extent = g.type(x).shape[axis]
        if not all(isinstance(size, int) for size in (first, last, extent)):
            raise Refusal(f"Pad in mode {mode!r} needs static sizes", "make the padded axis static")
        places = np.arange(-first, extent + last)
        if mode == "wrap":
            places %= extent
        else:
            period = max(2 * (extent - 1), 1)
            places = np.abs(places) % period if extent > 1 else places * 0
            places = np.where(places >= extent, period - places, places)
        x = g.call("aten::index_select", x, axis, g.constant(places.astype(np.int64)))
    return x


@OPERATORS.add("CenterCropPad")
def center_crop_pad(g, input_data, shape, *, axes=None):
    """Crops or pads with zeros around the centre; an odd element is at the end where it is padded."""
    wanted = static_ints(g, shape, "the shape of CenterCropPad")
    places = range(rank(g, input_data)) if axes is None else axes
    x = input_data
    for axis, size in zip((axis_of(g, x, each) for each in places), wanted, strict=True):
        extent = g.type(x).shape[axis]
        if size < extent:
            start = (extent - size) // 2
            x = g.call("aten::slice", x, axis, start, start + size, 1)
        elif size > extent:
            first = (size - extent) // 2
            pairs = [0] * 2 * rank(g, x)
            pairs[2 * axis : 2 * axis + 2] = [first, size - extent - first]
            x = g.call("aten::pad", x, pairs, "constant", 0)
    return x


@OPERATORS.add("ReverseSequence")
def reverse_sequence(g, input, sequence_lens, *, batch_axis=1, time_axis=0):
    """Reverses the first elements of each sequence, as many as it has."""
    from tmconvert.frontends.shared.suppression import reversed_sequences

    time, batch = axis_of(g, input, time_axis), axis_of(g, input, batch_axis)
    return reversed_sequences(g, input, sequence_lens, time, batch)
