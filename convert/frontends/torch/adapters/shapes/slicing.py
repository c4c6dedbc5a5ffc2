"""Slicing, splitting, concatenation and stacking."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.values import (
    axis_of,
    cast,
    is_tensor,
    promoted,
    rank,
    reshaped,
    static_int,
    static_ints,
    varargs,
)
from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import let_through, numbers, pairs

ATEN, FUNCTIONS, METHODS = Table(), Table(), Table()


# ---- one part


def bounds(extent: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Returns a Python slice, clipped to 0 and ``extent``; ATen uses 2**63 - 1 for the end."""

    def within(value: Any, default: Any) -> Any:
        if value is None or (isinstance(value, int) and value >= 1 << 62):
            return default
        value = value + extent if value < 0 else value
        return 0 if value < 0 else extent if value > extent else value

    first, last = within(start, 0), within(end, extent)
    return first, first if last < first else last


def cut(g: Emitter, x, axis: int, start, end, step=1) -> Any:
    if (start, end, step) == (0, g.type(x).shape[axis], 1):
        return x
    return g.call("aten::slice", x, axis, start, end, step)


def _number(g: Emitter, x, axis: int, index) -> Any:
    number, extent = static_int(g, index, "an index"), g.type(x).shape[axis]
    return number + extent if number < 0 else number


def _slice(g: Emitter, x, dim, start, end, step) -> tuple[int, Any, Any, Any]:
    axis = axis_of(g, x, dim)
    given = [None if each is None else static_int(g, each, "a slice bound") for each in (start, end)]
    return (axis, *bounds(g.type(x).shape[axis], *given), static_int(g, step))


@ATEN.add("slice", "slice_copy")
def slice_(g, input, dim=0, start=None, end=None, step=1):
    return cut(g, input, *_slice(g, input, dim, start, end, step))


@ATEN.add("narrow", "narrow_copy")
def narrow(g, input, dim, start, length):
    axis = axis_of(g, input, dim)
    if is_tensor(start) and g.sizes(start) is None:
        places = g.call("aten::arange", 0, static_int(g, length))
        first = g.call(
            "aten::remainder", cast(g, start, np.int64), g.constant(g.type(input).shape[axis] or 1)
        )
        return g.call("aten::index_select", input, axis, g.call("aten::add", places, reshaped(g, first, [])))
    first = _number(g, input, axis, start)
    return cut(g, input, axis, first, first + static_int(g, length))


@ATEN.add("select", "select_copy")
def select(g, input, dim, index):
    axis = axis_of(g, input, dim)
    if is_tensor(index) and g.sizes(index) is None:
        part = g.call("aten::index_select", input, axis, reshaped(g, index, [1]))
        return views.squeeze(g, part, axis)
    return g.call("aten::select", input, axis, _number(g, input, axis, index))


@ATEN.add("slice_scatter")
def slice_scatter(g, input, src, dim=0, start=None, end=None, step=1):
    src, place = cast(g, src, g.type(input).dtype), _slice(g, input, dim, start, end, step)
    shape = g.type(slice_(g, input, dim, start, end, step)).shape if place[1] != place[2] else None
    return (
        input if shape is None else g.call("aten::slice_scatter", input, views.expand(g, src, shape), *place)
    )


@ATEN.add("select_scatter")
def select_scatter(g, input, src, dim, index):
    axis, src = axis_of(g, input, dim), cast(g, src, g.type(input).dtype)
    if is_tensor(index) and g.sizes(index) is None:
        part = views.unsqueeze(g, src, axis)
        return g.call("aten::index_copy", input, axis, reshaped(g, index, [1]), part)
    return g.call("aten::select_scatter", input, src, axis, _number(g, input, axis, index))


@METHODS.add("narrow_scatter")
def narrow_scatter(g, self, src, dim, start):
    """Functionalized write to ``self.narrow(dim, start, ...)``."""
    axis = axis_of(g, self, dim)
    first = _number(g, self, axis, start)
    return slice_scatter(g, self, src, axis, first, first + g.type(src).shape[axis])


@METHODS.add("part_scatter")
def part_scatter(g, self, src, dim, before):
    """Functionalized write to the output of a split that follows those of sizes ``before``."""
    axis = axis_of(g, self, dim)
    first: Any = 0
    for part in before:
        first = first + g.type(part).shape[axis]
    return slice_scatter(g, self, src, axis, first, first + g.type(src).shape[axis])


# ---- all parts


@ATEN.add("unbind", "unbind_copy")
def unbind(g, input, dim=0):
    parts = g.call("aten::unbind", input, axis_of(g, input, dim))
    return parts if isinstance(parts, list) else [parts]


def _at(g: Emitter, x, axis: int, ends: Sequence[Any]) -> list[Any]:
    """Splits at the positions ``ends``, which may overlap or leave gaps like Python slices."""
    extent = g.type(x).shape[axis]
    starts = [0, *ends]
    return [
        cut(g, x, axis, *bounds(extent, start, end)) for start, end in zip(starts, [*ends, None], strict=True)
    ]


def _pieces(g: Emitter, x, sizes: Sequence[Any], axis: int) -> list[Any]:
    """Splits into parts of ``sizes`` elements that cover the axis."""
    if len(sizes) == 1:
        return [x]
    return list(g.call("aten::split_with_sizes", x, list(sizes), axis))


def _by_size(extent: Any, size: Any) -> list[Any]:
    """Splits into parts of ``size`` elements; the last has the remainder."""
    sizes, rest = [], extent
    while rest > size:
        sizes.append(size)
        rest = rest - size
    return [*sizes, rest]


@METHODS.add("split")
def split(g, self, split_size, dim=0):
    axis = axis_of(g, self, dim)
    if isinstance(split_size, (list, tuple)):
        return _pieces(g, self, static_ints(g, split_size), axis)
    return _pieces(g, self, _by_size(g.type(self).shape[axis], static_int(g, split_size)), axis)


@ATEN.add("split", "unsafe_split", "split_copy")
def split_tensor(g, tensor, split_size_or_sections, dim=0):
    return split(g, tensor, split_size_or_sections, dim)


@ATEN.add("split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(g, input, split_sizes, dim=0):
    return split(g, input, split_sizes, dim)


@ATEN.add("chunk", "unsafe_chunk")
def chunk(g, input, chunks, dim=0):
    """Splits into ``chunks`` equal parts or fewer."""
    axis, count = axis_of(g, input, dim), static_int(g, chunks)
    extent = g.type(input).shape[axis]
    size = -(-extent // count)
    if size == 0:
        return _pieces(g, input, [0] * count, axis)
    if size * count == extent:
        return _pieces(g, input, [size] * count, axis)
    return _pieces(g, input, _by_size(extent, size), axis)


@ATEN.add("tensor_split")
def tensor_split(g, input, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    axis = axis_of(g, input, dim)
    given = next(each for each in (indices_or_sections, indices, sections) if each is not None)
    if is_tensor(given) and rank(g, given) and g.sizes(given) is None:
        return _at_found(g, input, axis, given)
    if is_tensor(given) and not rank(g, given) and g.sizes(given) is None:
        raise Refusal("the number of parts is computed from the data", "pass a Python number")
    if isinstance(given, (list, tuple)) or (is_tensor(given) and rank(g, given)):
        return _at(g, input, axis, static_ints(g, given))
    count, extent = static_int(g, given), g.type(input).shape[axis]
    # the first extent % count parts have one element more
    sizes = [(extent + count - 1 - place) // count for place in range(count)]
    if not is_symbolic(extent):
        return _pieces(g, input, sizes, axis)
    ends = list(itertools.accumulate(sizes))
    return [
        cut(g, input, axis, end - size, end) for size, end in zip(sizes, [*ends[:-1], extent], strict=True)
    ]


def _at_found(g: Emitter, x, axis: int, ends) -> list[Any]:
    """Splits at data-dependent positions."""
    extent = g.type(x).shape[axis]
    place, wanted = Term(g, numbers(g, 0, extent)), Term(g, cast(g, ends, np.int64))
    wanted = (wanted < 0).where(wanted + Term(g, g.constant(extent)), wanted)
    limits = [wanted.call("select", dim=0, index=number) for number in range(wanted.type.shape[0])]
    parts = []
    for start, end in zip([None, *limits], [*limits, None], strict=True):
        inside = place >= 0 if start is None else place >= start
        inside = inside if end is None else inside & (place < end)
        parts.append(let_through(g, x, axis, inside.value))
    return parts


def _split_along(name: str, axis: int, axis_of_vectors: int) -> None:
    def adapter(g, input, *parts, indices=None, sections=None):
        dim = axis_of_vectors if rank(g, input) == 1 else axis
        given = parts[0] if len(parts) == 1 else list(parts) or indices or sections
        return tensor_split(g, input, given, dim)

    ATEN.add(name)(adapter)


_split_along("hsplit", 1, 0)
_split_along("vsplit", 0, 0)
_split_along("dsplit", 2, 2)


@ATEN.add("unfold", "unfold_copy")
def unfold(g, input, dimension, size, step):
    """Returns windows along an axis, as a new last axis; a tensor of rank 0 is its only window."""
    extent = static_int(g, size)
    if not rank(g, input):
        return cut(g, reshaped(g, input, [1]), 0, 0, extent)
    axis = axis_of(g, input, dimension)
    if extent == 0:
        shape = list(g.type(input).shape)
        shape[axis] = shape[axis] // static_int(g, step) + 1
        return views.expand(g, g.constant(0, g.type(input).dtype), [*shape, 0])
    return g.call("aten::unfold", input, axis, extent, static_int(g, step))


# ---- together


def joined(g: Emitter, tensors: Sequence[Any], axis: int) -> Any:
    return tensors[0] if len(tensors) == 1 else g.call("aten::cat", list(tensors), axis)


@ATEN.add("cat", "concat", "concatenate")
def cat(g, tensors, dim=0):
    """Concatenates tensors of their common type.

    Empty vectors are ignored, and parts without elements along the axis, which some runtimes cannot read.
    """
    parts = promoted(g, *tensors)
    kept = [x for x in parts if g.type(x).shape != (0,)] or parts[:1]
    axis = axis_of(g, kept[0], dim)
    filled = [x for x in kept if is_symbolic(extent := g.type(x).shape[axis]) or extent != 0]
    return joined(g, filled or kept[:1], axis)


@ATEN.add("stack", "_stack")
def stack(g, tensors, dim=0):
    parts = [views.unsqueeze(g, x, dim) for x in promoted(g, *tensors)]
    return joined(g, parts, axis_of(g, parts[0], dim))


def _stacked(name: str, axes: int, dim: int, dim_of_vectors: int | None = None) -> None:
    """Concatenates tensors of at least this rank."""

    def adapter(g: Emitter, tensors: Any) -> Any:
        parts = [views.ATEN[f"atleast_{axes}d"](g, x) for x in tensors]
        is_flat = dim_of_vectors is not None and rank(g, parts[0]) == 1
        return cat(g, parts, dim_of_vectors if is_flat else dim)

    ATEN.add(name)(adapter)


_stacked("hstack", 1, 1, 0)
_stacked("vstack", 2, 0)
_stacked("row_stack", 2, 0)
_stacked("dstack", 3, 2)


@ATEN.add("column_stack")
def column_stack(g, tensors):
    return cat(g, [x if rank(g, x) > 1 else reshaped(g, x, [g.type(x).size, 1]) for x in tensors], 1)


@ATEN.add("block_diag")
def block_diag(g, *tensors):
    """Builds a block-diagonal matrix."""
    parts = [views.ATEN["atleast_2d"](g, x) for x in promoted(g, *varargs(tensors))]
    widths = [g.type(x).shape[1] for x in parts]
    before = [0, *itertools.accumulate(widths)]
    return joined(
        g,
        [
            g.call("aten::pad", x, [0, 0, start, before[-1] - start - width])
            for x, start, width in zip(parts, before, widths, strict=False)
        ],
        0,
    )


@ATEN.add("broadcast_tensors")
def broadcast_tensors(g, *tensors):
    parts = varargs(tensors)
    shape = list(broadcast_shapes(*(g.type(x).shape for x in parts)))
    return [views.expand(g, x, shape) for x in parts]


@ATEN.add("meshgrid")
def meshgrid(g, *tensors, indexing="ij"):
    """ "ij": each input along its own axis; "xy": the first two axes are exchanged."""
    parts = varargs(tensors)
    order = list(range(len(parts)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = [g.type(parts[place]).size for place in order]
    results = []
    for x, axis in zip(parts, order, strict=True):
        column = [1] * len(shape)
        column[axis] = g.type(x).size
        results.append(views.expand(g, reshaped(g, x, column), shape))
    return results


@ATEN.add("cartesian_prod")
def cartesian_prod(g, *tensors):
    parts = varargs(tensors)
    if len(parts) == 1:
        return parts[0]
    columns = [reshaped(g, x, [g.type(x).size, 1]) for x in meshgrid(g, promoted(g, *parts))]
    return joined(g, columns, 1)


@ATEN.add("combinations")
def combinations(g, input, r=2, with_replacement=False):
    """Chooses two of the elements; of other counts the positions are a constant."""
    extent = g.type(input).shape[0]
    if r == 2:
        places = pairs(g, extent, int(not with_replacement))
        columns = [
            reshaped(g, g.call("aten::index_select", input, 0, each), [g.type(each).size, 1])
            for each in places
        ]
        return joined(g, columns, 1)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(choose(range(int(extent)), r)), np.int64).reshape(-1, r)
    picked = g.call("aten::index_select", input, 0, g.constant(chosen.reshape(-1)))
    return reshaped(g, picked, list(chosen.shape))


@ATEN.add("vander")
def vander(g, x, N=None, increasing=False):
    """Powers of a vector as columns, the highest first."""
    rows = g.type(x).shape[0]
    count = rows if N is None else static_int(g, N)
    powers = numbers(g, 0, count)
    if not increasing:
        powers = g.call("aten::sub", g.constant(count - 1, np.int64), powers)
    base = x if g.type(x).dtype.kind == "f" else cast(g, x, np.int64)
    return g.call("aten::pow", reshaped(g, base, [rows, 1]), cast(g, powers, g.type(base).dtype))


# ---- elements moved


@METHODS.add("flip")
def method_flip(g, self, *dims, **named):
    return flip(g, self, *(() if not dims else [varargs(dims)]), **named)


@ATEN.add("flip")
def flip(g, input, dims):
    axes = [axis_of(g, input, axis) for axis in static_ints(g, dims)]
    return g.call("aten::flip", input, axes) if axes else input


ATEN.add("fliplr")(lambda g, input: flip(g, input, 1))
ATEN.add("flipud")(lambda g, input: flip(g, input, 0))


@ATEN.add("roll")
def roll(g, input, shifts, dims=()):
    axes = [] if dims is None else [axis_of(g, input, axis) for axis in static_ints(g, dims)]
    return g.call("aten::roll", input, static_ints(g, shifts), axes)


@ATEN.add("repeat_interleave")
def repeat_interleave(g, input, repeats=None, dim=None, *, output_size=None):
    """Repeats each element by a number, or by its own; without ``dim`` the tensor is flattened."""
    if repeats is None:  # the numbers alone: which element each place comes from
        input, repeats = g.call("aten::arange", 0, g.type(input).size), input
    if dim is None:
        input, dim = reshaped(g, input, [g.type(input).size]), 0
    axis = axis_of(g, input, dim)
    if not is_tensor(repeats):
        return g.call("aten::repeat_interleave", input, static_int(g, repeats), axis)
    known, extent = g.known(repeats), g.type(input).shape[axis]
    if known is None:
        every = views.expand(g, reshaped(g, repeats, [g.type(repeats).size]), [extent])
        return g.call("aten::index_select", input, axis, g.call("tm::repeat_indices", every))
    places = np.repeat(np.arange(extent), np.broadcast_to(known.reshape(-1), (extent,)))
    return g.call("aten::index_select", input, axis, g.constant(places))


# ---- diagonals


@ATEN.add("diag")
def diag(g, input, diagonal=0):
    """Returns the diagonal of a matrix, or the diagonal matrix of a vector."""
    return g.call(
        "aten::diagonal" if rank(g, input) == 2 else "aten::diag_embed", input, static_int(g, diagonal)
    )


@ATEN.add("diagflat")
def diagflat(g, input, offset=0):
    return g.call("aten::diag_embed", reshaped(g, input, [g.type(input).size]), static_int(g, offset))


@ATEN.add("linalg_diagonal")
def linalg_diagonal(g, A, *, offset=0, dim1=-2, dim2=-1):
    return g.call("aten::diagonal", A, offset, dim1, dim2)


@ATEN.add("diagonal_scatter")
def diagonal_scatter(g, input, src, offset=0, dim1=0, dim2=1):
    src = cast(g, src, g.type(input).dtype)
    return g.call("aten::diagonal_scatter", input, src, offset, dim1, dim2)
