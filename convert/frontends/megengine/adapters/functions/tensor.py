"""megengine.functional.tensor, and the shape methods of Tensor."""

from __future__ import annotations

import itertools
import math
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions.indexing import getitem, setitem
from tmconvert.frontends.megengine.adapters.values import (
    MAX_INTS,
    axes_of,
    axis_of,
    cast,
    is_tensor,
    promoted,
    rank,
    reshaped,
    static_int,
    static_ints,
)
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir import QParams
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.tensor.")
METHODS = Table()

METHODS.add("__getitem__")(getitem)
METHODS.add("__setitem__")(setitem)


@FUNCTIONS.add("reshape")
def reshape(g, inp, target_shape):
    return reshaped(g, inp, static_ints(g, target_shape))


@METHODS.add("reshape")
def reshape_method(g, x, *shape):
    """``x.reshape(2, -1)`` and ``x.reshape((2, -1))``."""
    return reshaped(g, x, static_ints(g, _variadic(shape)))


def _variadic(items: tuple[Any, ...]) -> Any:
    if len(items) == 1 and (isinstance(items[0], (list, tuple)) or is_tensor(items[0])):
        return items[0]
    return items


@METHODS.add("flatten")
@FUNCTIONS.add("flatten")
def flatten(g, inp, start_axis=0, end_axis=-1):
    shape = g.type(inp).shape
    if not shape:
        return reshaped(g, inp, [1])
    start, end = axis_of(g, inp, start_axis), axis_of(g, inp, end_axis)
    if start > end:
        raise Refusal(f"cannot flatten axes {start} to {end}")
    size = math.prod(shape[start : end + 1])
    return reshaped(g, inp, [*shape[:start], size, *shape[end + 1 :]])


@FUNCTIONS.add("transpose")
def transpose(g, inp, pattern):
    """Permutes axes; entries "x" insert an axis."""
    if isinstance(pattern, (list, tuple)) and "x" in pattern:
        moved = transpose(g, inp, [item for item in pattern if item != "x"])
        sizes = iter(g.type(moved).shape)
        return reshaped(g, moved, [1 if item == "x" else next(sizes) for item in pattern])
    order = [axis_of(g, inp, axis) for axis in static_ints(g, pattern, "an axis")]
    if sorted(order) != list(range(rank(g, inp))):
        raise Refusal(f"{pattern!r} is not a permutation of the axes of {g.type(inp)}")
    return inp if order == sorted(order) else g.call("aten::permute", inp, order)


@METHODS.add("transpose")
def transpose_method(g, x, *pattern):
    """``x.transpose(0, 2, 1)``, ``x.transpose((0, 2, 1))``; without axes, in reverse order."""
    axes = _variadic(pattern) if pattern else tuple(range(rank(g, x)))[::-1]
    return transpose(g, x, axes)


@FUNCTIONS.add("swapaxes")
def swapaxes(g, inp, axis1, axis2):
    order = list(range(rank(g, inp)))
    first, second = axis_of(g, inp, axis1), axis_of(g, inp, axis2)
    order[first], order[second] = second, first
    return transpose(g, inp, order)


@FUNCTIONS.add("squeeze")
def squeeze(g, inp, axis=None):
    shape = g.type(inp).shape
    dropped = [i for i, extent in enumerate(shape) if extent == 1] if axis is None else axes_of(g, inp, axis)
    if any(shape[i] != 1 for i in dropped):
        raise Refusal(f"cannot squeeze axes {dropped} of {g.type(inp)}")
    return reshaped(g, inp, [extent for i, extent in enumerate(shape) if i not in dropped])


@FUNCTIONS.add("expand_dims")
def expand_dims(g, inp, axis):
    new_axes = static_ints(g, axis, "an axis")
    total = rank(g, inp) + len(new_axes)
    positions = {item % total for item in new_axes if -total <= item < total}
    if len(positions) != len(new_axes):
        raise Refusal(f"cannot insert the axes {new_axes} into {g.type(inp)}")
    sizes = iter(g.type(inp).shape)
    return reshaped(g, inp, [1 if i in positions else next(sizes) for i in range(total)])


@FUNCTIONS.add("concat")
def concat(g, inps, axis=0, device=None):
    tensors = _joinable(g, inps)
    return tensors[0] if len(tensors) == 1 else g.call("aten::cat", tensors, axis_of(g, tensors[0], axis))


@FUNCTIONS.add("stack")
def stack(g, inps, axis=0, device=None):
    where = static_int(g, axis, "an axis")
    return concat(g, [expand_dims(g, x, where) for x in _joinable(g, inps)], where)


def _joinable(g: Emitter, inps: Any) -> list[Any]:
    """Returns tensors of one dtype; scalars become vectors, also for ``stack``."""
    tensors = [x if rank(g, x) else reshaped(g, x, [1]) for x in inps]
    if not tensors:
        raise Refusal("concat of an empty list is not supported")
    for x in tensors[1:]:
        tensors[0], _ = promoted(g, tensors[0], x)
    return [tensors[0], *(cast(g, x, g.type(tensors[0]).dtype) for x in tensors[1:])]


@FUNCTIONS.add("split")
def split(g, inp, nsplits_or_sections, axis=0):
    """Splits into a number of equal parts, or at split points."""
    where = axis_of(g, inp, axis)
    extent = g.type(inp).shape[where]
    if isinstance(nsplits_or_sections, (list, tuple)):
        points = static_ints(g, nsplits_or_sections, "a split point")
    else:
        parts = static_int(g, nsplits_or_sections, "a number of parts")
        if parts < 1 or parts > MAX_INTS or extent % parts:
            raise Refusal(f"axis {where} of {g.type(inp)} cannot be split into {parts} equal parts")
        points = [extent // parts * i for i in range(1, parts)]
    bounds = [0, *points, extent]
    if bounds != sorted(bounds):
        raise Refusal(f"the split points {points} are not ascending within {extent}")
    return [
        g.call("aten::slice", inp, where, start, end, 1) if (start, end) != (0, extent) else inp
        for start, end in itertools.pairwise(bounds)
    ]


@METHODS.add("__new__")
def new_tensor(g, cls, data, dtype=None, device=None, *others, **more):
    """``Tensor(x)`` and ``Parameter(x)`` of a tensor: a copy."""
    if not is_tensor(data):
        raise Refusal(f"Tensor() of {data!r} is supported only for tensors")
    return data if dtype is None else cast(g, data, dtype)


@METHODS.add("astype")
def astype(g, x, dtype):
    """Casts a tensor. A cast to a quantized dtype quantizes the values; one from it keeps the real values."""
    return g.quantized(x, dtype) if isinstance(dtype, QParams) else cast(g, x, dtype)


@FUNCTIONS.add("cumsum")
def cumsum(g, inp, axis):
    """Cumulative sum in the element type, also of small integers."""
    if g.type(inp).dtype.kind == "b":
        raise Refusal("MegEngine has no cumulative sum of bools", "convert them to int32 first")
    return g.call("aten::cumsum", inp, axis_of(g, inp, axis))
