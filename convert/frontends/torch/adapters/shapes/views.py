"""View, reshape, permute and expand functions, and sizes."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import (
    axes_of,
    axis_of,
    cast,
    is_tensor,
    rank,
    reshaped,
    static_int,
    static_ints,
    varargs,
)
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.formulas import Term

ATEN, METHODS = Table(), Table()


@METHODS.add("size")
def size(g, self, dim):
    return g.type(self).shape[dim]


METHODS.add("numel")(lambda g, self: g.type(self).size)


@ATEN.add(
    *("contiguous", "detach", "clone", "alias", "lift", "lift_fresh", "lift_fresh_copy", "data"),
    *("requires_grad", "cpu", "cuda", "pin_memory", "share_memory"),
)
def same(g, input, *args, **kwargs):
    return input


# ---- reshape


@METHODS.add("view", "reshape")
def method_view(g, self, *sizes, dtype=None, shape=None):
    if dtype is not None or (sizes and isinstance(sizes[0], GlobalRef)):
        raise Refusal("viewing bytes as another element type is not supported", "convert with to()")
    return view(g, self, varargs(sizes) if shape is None else shape)


@ATEN.add("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias")
def view(g, input, shape, stride=None):
    return reshaped(g, input, static_ints(g, shape))


ATEN.add("view_as", "reshape_as")(lambda g, self, other: reshaped(g, self, list(g.type(other).shape)))


@ATEN.add("flatten")
def flatten(g, input, start_dim=0, end_dim=-1):
    if not rank(g, input):
        return reshaped(g, input, [1])
    shape = list(g.type(input).shape)
    first, last = axis_of(g, input, start_dim), axis_of(g, input, end_dim)
    return reshaped(g, input, [*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]])


ATEN.add("ravel")(lambda g, input: flatten(g, input))


@ATEN.add("unflatten")
def unflatten(g, input, dim, sizes):
    shape, axis = list(g.type(input).shape), axis_of(g, input, dim)
    parts = static_ints(g, sizes)
    if parts.count(-1) == 1:
        parts[parts.index(-1)] = shape[axis] // math.prod(part for part in parts if part != -1)
    return reshaped(g, input, [*shape[:axis], *parts, *shape[axis + 1 :]])


METHODS.add("unflatten")(lambda g, self, dim, sizes: unflatten(g, self, dim, sizes))


@METHODS.add("squeeze")
def method_squeeze(g, self, *dim, **named):
    return squeeze(g, self, *(() if not dim else [varargs(dim)]), **named)


@ATEN.add("squeeze", "squeeze_copy")
def squeeze(g, input, dim=None):
    axes = axes_of(g, input, dim) if rank(g, input) else []
    shape = g.type(input).shape
    return reshaped(g, input, [n for axis, n in enumerate(shape) if not (axis in axes and n == 1)])


@ATEN.add("unsqueeze", "unsqueeze_copy")
def unsqueeze(g, input, dim):
    shape, axis = list(g.type(input).shape), static_int(g, dim, "an axis")
    if not -len(shape) - 1 <= axis <= len(shape):
        raise Refusal(f"axis {axis} is out of range for a tensor of rank {len(shape) + 1}")
    shape.insert(axis % (len(shape) + 1), 1)
    return reshaped(g, input, shape)


def _at_least(axes: int, places: dict[int, list[int]]) -> None:
    """Returns a tensor of at least a rank; by rank, the positions of its axes among those of the result."""

    def adapter(g, *tensors):
        def widened(x):
            if rank(g, x) >= axes:
                return x
            shape = [1] * axes
            for place, extent in zip(places.get(rank(g, x), []), g.type(x).shape, strict=True):
                shape[place] = extent
            return reshaped(g, x, shape)

        results = [widened(x) for x in varargs(tensors)]
        return results if len(results) > 1 or not is_tensor(tensors[0]) else results[0]

    ATEN.add(f"atleast_{axes}d")(adapter)


_at_least(1, {})
_at_least(2, {1: [1]})
_at_least(3, {1: [1], 2: [0, 1]})


# ---- permute


@METHODS.add("permute")
def method_permute(g, self, *dims, **named):
    return permute(g, self, *(() if not dims else [varargs(dims)]), **named)


@ATEN.add("permute", "permute_copy")
def permute(g, input, dims):
    order = [axis_of(g, input, axis) for axis in dims]
    return input if order == sorted(order) else g.call("aten::permute", input, order)


@ATEN.add("transpose", "swapaxes", "swapdims", "transpose_copy")
def transpose(g, input, dim0, dim1):
    order = list(range(rank(g, input)))
    if not order:
        return input
    first, second = axis_of(g, input, dim0), axis_of(g, input, dim1)
    order[first], order[second] = second, first
    return permute(g, input, order)


METHODS.add("swapaxes")(lambda g, self, axis0, axis1: transpose(g, self, axis0, axis1))


@ATEN.add("t", "T", "H", "numpy_T", "matrix_H", "t_copy")
def reversed_axes(g, input):
    return permute(g, input, list(range(rank(g, input)))[::-1])


ATEN.add("mT", "mH", "adjoint")(lambda g, input: transpose(g, input, -2, -1))


@ATEN.add("movedim", "moveaxis")
def movedim(g, input, source, destination):
    starts, ends = (
        [axis_of(g, input, axis) for axis in static_ints(g, each)] for each in (source, destination)
    )
    rest = iter(axis for axis in range(rank(g, input)) if axis not in starts)
    places = dict(zip(ends, starts, strict=True))
    return permute(g, input, [places[i] if i in places else next(rest) for i in range(rank(g, input))])


# ---- expand


@METHODS.add("expand", "broadcast_to")
def method_expand(g, self, *size, **named):
    named.pop("implicit", None)
    return expand(g, self, *(() if not size else [varargs(size)]), **named)


@ATEN.add("expand", "broadcast_to", "expand_copy")
def expand(g, input, size, implicit=False):
    """Broadcasts a tensor; -1 keeps an extent."""
    shape, sizes = g.type(input).shape, static_ints(g, size)
    new = len(sizes) - len(shape)
    sizes = [shape[i - new] if i >= new and n == -1 else n for i, n in enumerate(sizes)]
    return input if tuple(sizes) == shape else g.call("aten::expand", input, sizes)


ATEN.add("expand_as")(lambda g, self, other: expand(g, self, list(g.type(other).shape)))


@METHODS.add("repeat")
def method_repeat(g, self, *repeats, **named):
    return repeat(g, self, *(() if not repeats else [varargs(repeats)]), **named)


@ATEN.add("repeat")
def repeat(g, input, repeats):
    return g.call("aten::repeat", input, static_ints(g, repeats))


@METHODS.add("tile")
def method_tile(g, self, *dims, **named):
    return tile(g, self, *(() if not dims else [varargs(dims)]), **named)


@ATEN.add("tile")
def tile(g, input, dims):
    """Repeats a tensor; fewer factors than axes apply to the last axes."""
    copies = static_ints(g, dims)
    return repeat(g, input, [1] * (rank(g, input) - len(copies)) + copies)


# ---- places in memory


@ATEN.add("as_strided", "as_strided_copy")
def as_strided(g, input, size, stride, storage_offset=None):
    """Returns elements by memory offset; the memory is that of contiguous ``input``."""
    sizes, steps = static_ints(g, size), static_ints(g, stride)
    start = 0 if storage_offset is None else static_int(g, storage_offset, "an offset")
    row = reshaped(g, input, [g.type(input).size])
    if is_symbolic((*sizes, *steps, start)):
        offsets = Term(g, g.constant(start, np.int64))
        for axis, (extent, step) in enumerate(zip(sizes, steps, strict=True)):
            line = reshaped(g, g.call("aten::arange", 0, extent), [extent] + [1] * (len(sizes) - 1 - axis))
            offsets = offsets + Term(g, line) * step
        picked = g.call("aten::index_select", row, 0, reshaped(g, offsets.value, [math.prod(sizes)]))
        return reshaped(g, picked, sizes)
    places = _in_memory(g, size, stride, storage_offset)
    picked = g.call("aten::index_select", row, 0, g.constant(places.reshape(-1)))
    return reshaped(g, picked, list(places.shape))


@ATEN.add("as_strided_scatter")
def as_strided_scatter(g, input, src, size, stride, storage_offset=None):
    """Writes ``src`` to the elements that ``as_strided`` reads; for duplicates the last one wins."""
    places, type_ = _in_memory(g, size, stride, storage_offset), g.type(input)
    if places.size and not 0 <= places.min() <= places.max() < type_.size:
        raise Refusal("as_strided_scatter writes beyond its tensor")
    source = reshaped(g, cast(g, src, type_.dtype), [places.size])
    places, last = np.unique(places.reshape(-1)[::-1], return_index=True)
    source = g.call("aten::index_select", source, 0, g.constant(g.type(source).size - 1 - last))
    row = g.call("aten::index_copy", reshaped(g, input, [type_.size]), 0, g.constant(places), source)
    return reshaped(g, row, list(type_.shape))


def _in_memory(g: Emitter, size, stride, storage_offset) -> np.ndarray:
    places = np.asarray(0 if storage_offset is None else static_int(g, storage_offset, "an offset"))
    for extent, step in zip(static_ints(g, size), static_ints(g, stride), strict=True):
        places = places[..., None] + np.arange(extent) * step
    return places
