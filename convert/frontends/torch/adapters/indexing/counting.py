"""Functions with data-dependent result sizes: nonzero, unique, bincount."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.indexing.gather_scatter import with_axis
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.slicing import cut, joined
from tmconvert.frontends.torch.adapters.values import axis_of, cast, indices, rank, reshaped, static_int
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import numbers

ATEN, FUNCTIONS, METHODS = Table(), Table("torch."), Table()


# ---- places


@ATEN.add("nonzero")
def nonzero(g, input, *, as_tuple=False):
    """Returns a row of indices per non-zero element; with ``as_tuple`` one tensor per axis."""
    places = g.call("aten::nonzero", with_axis(g, input)[0])
    if not as_tuple:
        return places if rank(g, input) else cut(g, places, 1, 0, 0)
    return [g.call("aten::select", places, 1, axis) for axis in range(max(rank(g, input), 1))]


ATEN.add("argwhere")(lambda g, input: nonzero(g, input))
ATEN.add("nonzero_numpy")(lambda g, input: nonzero(g, input, as_tuple=True))


@ATEN.add("nonzero_static")
def nonzero_static(g, input, *, size, fill_value=-1):
    """Returns the first ``size`` rows of ``nonzero``, padded with ``fill_value``.

    The n-th non-zero element is written to row n, and all zeros to an additional row.
    """
    shape, count = g.type(input).shape, static_int(g, size)
    total = g.type(input).size
    mask = Term(g, cast(g, reshaped(g, input, [total]), np.bool_))
    number = mask.to(np.int64).cumsum(dim=0) - 1
    row = (mask & (number < count)).where(number, count)
    nowhere = views.expand(g, g.constant(-1, np.int64), [count + 1])
    filled = g.call("aten::scatter", nowhere, 0, row.value, numbers(g, 0, total))
    place = Term(g, cut(g, filled, 0, 0, count))
    columns = []
    for axis in range(len(shape)):
        after = math.prod(shape[axis + 1 :])
        step, extent = (g.constant(each, np.int64) for each in (after, shape[axis]))
        column = place.call("floor_divide", Term(g, step)).call("remainder", Term(g, extent))
        columns.append(reshaped(g, (place < 0).where(place.like(fill_value), column).value, [count, 1]))
    return joined(g, columns, 1) if columns else g.constant(np.zeros((count, 0), np.int64))


# ---- classes and runs


def classes(g, x, least=0):
    """Returns int64 0, 1, ... up to the largest element, at least ``least`` values."""
    known = g.known(x)
    if g.type(x).size == 0:
        return numbers(g, 0, least)
    if known is not None:
        return numbers(g, 0, max(least, int(known.max()) + 1))
    row = Term(g, cast(g, reshaped(g, x, [g.type(x).size]), np.int64))
    end = row.call("amax", dim=[0], keepdim=False) + 1
    end = (end < least).where(least, end)
    return g.call("tm::count_to", end.value)


@ATEN.add("bincount")
def bincount(g, input, weights=None, minlength=0):
    """Counts how often each of 0, 1, ... occurs; with ``weights`` sums the weights."""
    places = Term(g, classes(g, input, static_int(g, minlength)))
    is_single = weights is not None and g.type(weights).dtype == np.float32
    dtype: np.dtype = np.dtype("int64" if weights is None else "float32" if is_single else "float64")
    ones = views.expand(g, g.constant(1, dtype), [g.type(input).size])
    source = ones if weights is None else cast(g, weights, dtype)
    zeros = (places * 0).to(dtype)
    return g.call("aten::index_add", zeros.value, 0, indices(g, input), source)


# torch's own functions give what is asked for; ATen's all three, and where there is no axis what is not
# asked for without elements


@METHODS.add("unique")
@FUNCTIONS.add("unique")
def unique(g, input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    results = _unique2(g, input, True, True, True) if dim is None else unique_dim(g, input, dim)
    return _requested(results, return_inverse, return_counts)


@METHODS.add("unique_consecutive")
@FUNCTIONS.add("unique_consecutive")
def unique_consecutive(g, input, return_inverse=False, return_counts=False, dim=None):
    return _requested(runs(g, input, True, True, dim), return_inverse, return_counts)


@ATEN.add("_unique")
def _unique(g, input, sorted=True, return_inverse=False):
    return _unique2(g, input, sorted, return_inverse)[:2]


@ATEN.add("_unique2")
def _unique2(g, input, sorted=True, return_inverse=False, return_counts=False):
    results = g.call("aten::_unique2", input, True, return_inverse, return_counts)
    return _or_none(g, results, return_inverse, return_counts)


@ATEN.add("unique_dim")
def unique_dim(g, input, dim, sorted=True, return_inverse=False, return_counts=False):
    """Returns the distinct slices along an axis, in lexicographic order."""
    axis = axis_of(g, input, dim)
    if g.type(input).shape[axis] == 0:
        return _no_slices(g, input)
    return g.call("aten::unique_dim", input, axis, True, True, True)


@ATEN.add("unique_consecutive")
def runs(g, input, return_inverse=False, return_counts=False, dim=None):
    if dim is not None:
        return _runs_of_slices(g, input, axis_of(g, input, dim))
    results = g.call("aten::unique_consecutive", input, return_inverse, return_counts)
    return _or_none(g, results, return_inverse, return_counts)


@ATEN.add("unique_dim_consecutive")
def runs_of_slices(g, input, dim, return_inverse=False, return_counts=False):
    return _runs_of_slices(g, input, axis_of(g, input, dim))


def _runs_of_slices(g: Emitter, x, axis: int) -> list[Any]:
    """Returns the first index of each run of equal slices, the run of each slice, and the run lengths."""
    count = g.type(x).shape[axis]
    if count == 0:
        return _no_slices(g, x)
    later, earlier = cut(g, x, axis, 1, count), cut(g, x, axis, 0, count - 1)
    others = [each for each in range(rank(g, x)) if each != axis]
    differs = Term(g, later).call("ne", Term(g, earlier))
    starts = (differs.call("any", dim=others, keepdim=False) if others else differs).to(np.int64)
    numbers = Term(g, joined(g, [g.constant(np.zeros(1, np.int64)), starts.value], 0)).cumsum(dim=0)
    _, _, lengths = g.call("aten::unique_consecutive", numbers.value, True, True)
    length = Term(g, lengths)
    first = length.cumsum(dim=0) - length
    return [g.call("aten::index_select", x, axis, first.value), numbers.value, lengths]


def _no_slices(g: Emitter, x) -> list[Any]:
    none = g.constant(np.zeros(0, np.int64))
    return [x, none, none]


def _or_none(g: Emitter, results: list[Any], return_inverse: bool, return_counts: bool) -> list[Any]:
    none = g.constant(np.zeros(0, np.int64))
    return [results[0], results[1] if return_inverse else none, results[2] if return_counts else none]


def _requested(results: list[Any], return_inverse: bool, return_counts: bool) -> Any:
    kept = [results[0], *results[1:2] * return_inverse, *results[2:] * return_counts]
    return kept[0] if len(kept) == 1 else kept
