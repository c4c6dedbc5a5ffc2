"""Histograms and segment reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.creation import filled, linspace
from tmconvert.frontends.torch.adapters.shapes.slicing import cut
from tmconvert.frontends.torch.adapters.values import axis_of, is_tensor, rank, reshaped, static_int
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import numbers

ATEN = Table()


# ---- histograms


@ATEN.add("histogram")
def histogram(g, input, bins=100, *, range=None, weight=None, density=False):
    """Counts elements, or sums their weights, per bin; returns also the edges of the bins."""
    count = g.type(input).size
    column, row = reshaped(g, input, [count, 1]), None if weight is None else reshaped(g, weight, [count])
    hist, edges = histogramdd(g, column, [bins], range, row, density)
    return hist, edges[0]


@ATEN.add("histogramdd")
def histogramdd(g, input, bins, range=None, weight=None, density=False):
    """Histogram of points [..., N] in bins of N axes; ``bins`` has their numbers or their edges."""
    *before, axes = g.type(input).shape
    dtype, count = g.type(input).dtype, math.prod(before)
    rows = reshaped(g, input, [count, axes])
    bins = list(bins) if isinstance(bins, (list, tuple)) else [bins] * axes
    columns = [Term(g, g.call("aten::select", rows, 1, axis)) for axis, _ in enumerate(bins)]
    edges = [
        each if is_tensor(each) else _edges(g, columns[i], static_int(g, each), range and range[2 * i :][:2])
        for i, each in enumerate(bins)
    ]
    sizes = [g.type(each).size - 1 for each in edges]
    parts = Term(g, filled(g, [count], 1, dtype) if weight is None else reshaped(g, weight, [count]))
    hist = Term(g, filled(g, sizes, 0, dtype))
    if count:
        place, inside = _places(g, columns, edges, sizes)
        row, parts = hist.call("reshape", shape=[math.prod(sizes)]), inside.where(parts, 0)
        row = Term(g, g.call("aten::scatter_add", row.value, 0, place.value, parts.value))
        hist = row.call("reshape", shape=sizes)
    if density:
        hist = hist / hist.call("sum", dim=None, keepdim=False)
        for axis, (each, size) in enumerate(zip(edges, sizes, strict=True)):
            wide = Term(g, cut(g, each, 0, 1, size + 1)) - Term(g, cut(g, each, 0, 0, size))
            hist = hist / Term(g, reshaped(g, wide.value, [size, *[1] * (axes - axis - 1)]))
    return hist.value, edges


def _edges(g: Emitter, column: Term, count: int, bounds: Any) -> Any:
    """Returns the edges of ``count`` equal bins between ``bounds``, or extremes; equal ends move by 0.5."""
    dtype = column.dtype
    if column.type.size == 0 and not bounds:
        bounds = (0, 1)
    if bounds:
        low, high = (float(each) for each in bounds)
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        return linspace(g, low, high, count + 1, dtype=dtype)
    first, last = (column.call(name, dim=[0], keepdim=False) for name in ("amin", "amax"))
    more = first.eq(last).to(dtype) * 0.5
    return linspace(g, (first - more).value, (last + more).value, count + 1, dtype=dtype)


def _places(
    g: Emitter, columns: Sequence[Term], edges: Sequence[Any], sizes: Sequence[Any]
) -> tuple[Term, Term]:
    """Returns the bin index of each point, and whether there is one. The last bin includes its end."""
    place, inside = None, None
    for column, each, size in zip(columns, edges, sizes, strict=True):
        first, last = (Term(g, g.call("aten::select", each, 0, number)) for number in (0, size))
        within = (column >= first) & (column <= last)
        found = Term(g, g.call("aten::searchsorted", each, column.value, True, None)).to("int64") - 1
        found = (found > size - 1).where(size - 1, found)
        found = within.where(found, 0)
        place = found if place is None else place * size + found
        inside = within if inside is None else inside & within
    assert place is not None and inside is not None
    return place, inside


# ---- segments

# torch's name: (that of aten::scatter_reduce, what there is before the first element)
REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
}


@ATEN.add("segment_reduce")
def segment_reduce(
    g, data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None
):
    """Reduces each segment along an axis to one element, starting from ``initial``.

    Shapes: data [B, n, ...], lengths [B, S] or offsets [B, S + 1] -> [B, S, ...]. The mean of an empty
    segment without ``initial`` is NaN. Elements outside of all segments are added to an extra segment, which
    is removed.
    """
    axis, type_ = axis_of(g, data, axis), g.type(data)
    before, extent, after = type_.shape[:axis], type_.shape[axis], type_.shape[axis + 1 :]
    starts, ends = _segments(g, lengths, offsets)
    count = ends.type.shape[-1]
    number = Term(g, numbers(g, 0, extent))
    is_over = Term(g, reshaped(g, ends.value, [*before, count, 1])) <= number
    segment = is_over.to("int64").call("sum", dim=[-2], keepdim=False)
    first = Term(g, cut(g, starts.value, axis, 0, 1))
    segment = (number < first).where(count, segment)
    places = views.expand(g, reshaped(g, segment.value, [*before, extent, *[1] * len(after)]), type_.shape)
    name, neutral = REDUCTIONS[reduce]
    base = filled(g, [*before, count + 1, *after], neutral if initial is None else initial, type_.dtype)
    reduced = g.call("aten::scatter_reduce", base, axis, places, data, name, True)
    result = Term(g, cut(g, reduced, axis, 0, count))
    if reduce != "mean":
        return result.value
    length = (ends - starts).to(type_.dtype)
    length = Term(g, reshaped(g, length.value, [*before, count, *[1] * len(after)]))
    mean = result / length.eq(0).where(1, length)
    return (mean if initial is not None else length.eq(0).where(math.nan, mean)).value


def _segments(g: Emitter, lengths, offsets) -> tuple[Term, Term]:
    """Returns the start and end index of each segment."""
    if lengths is None:
        axis = rank(g, offsets) - 1
        place, count = Term(g, offsets).to("int64").value, g.type(offsets).shape[axis] - 1
        return Term(g, cut(g, place, axis, 0, count)), Term(g, cut(g, place, axis, 1, count + 1))
    length = Term(g, lengths).to("int64")
    ends = length.cumsum(dim=rank(g, lengths) - 1)
    return ends - length, ends


# ---- jagged nested tensors: rows of all items one after another, with the offsets of the items


@ATEN.add("_jagged_to_padded_dense_forward")
def jagged_to_padded(g, values, offsets, max_lengths, padding_value=0.0):
    """Returns [items, longest, ...] from rows [total, ...]; longer items are cut."""
    rows, bounds, longest = Term(g, values), Term(g, _one(offsets)), _one(max_lengths)
    items, (total, *rest) = bounds.type.shape[0] - 1, rows.type.shape
    begin, end = (bounds.slice(dim=0, start=at, end=items + at).reshape(shape=[items, 1]) for at in (0, 1))
    places = begin + Term(g, numbers(g, 0, longest)).to(bounds.dtype)
    index = places.clamp(min=0, max=total - 1).reshape(shape=[items * longest])
    found = Term(g, g.call("aten::index_select", rows.value, 0, index.value))
    inside = (places < end).reshape(shape=[items, longest, *[1] * len(rest)])
    return inside.where(found.reshape(shape=[items, longest, *rest]), padding_value).value


@ATEN.add("_padded_dense_to_jagged_forward")
def padded_to_jagged(g, dense, offsets, total_L=None):
    """Returns rows [total, ...] from [items, longest, ...]."""
    if total_L is None:
        raise Refusal("the number of rows of a jagged tensor is computed from the data", "pass total_L")
    x, bounds = Term(g, dense), Term(g, _one(offsets))
    items, longest, *rest = x.type.shape
    rows = Term(g, numbers(g, 0, total_L)).to(bounds.dtype)
    end = bounds.slice(dim=0, start=1, end=items + 1).reshape(shape=[items, 1])
    item = (end <= rows).to(bounds.dtype).sum(dim=[0])
    begin = Term(g, g.call("aten::index_select", bounds.value, 0, item.value))
    index = item * Term(g, g.constant(longest, bounds.dtype)) + rows - begin
    return g.call("aten::index_select", x.reshape(shape=[items * longest, *rest]).value, 0, index.value)


def _one(values: Any) -> Any:
    """Returns the only element of a list. Raises Refusal for several ragged axes."""
    if len(values) != 1:
        raise Refusal("jagged tensors with several ragged axes are not supported")
    return values[0]
