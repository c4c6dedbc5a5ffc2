"""Gather, scatter, index_select and masked functions."""

from __future__ import annotations

from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.slicing import cut
from tmconvert.frontends.torch.adapters.values import (
    axis_of,
    cast,
    constant,
    is_tensor,
    number_of,
    promoted,
    rank,
    reshaped,
)
from tmconvert.ir.emitter import Emitter

ATEN = Table()


def like(g, x, value):
    """Returns a tensor or number with the element type of ``x``."""
    dtype = g.type(x).dtype
    return cast(g, value, dtype) if is_tensor(value) else constant(g, value, dtype)


def with_axis(g: Emitter, *tensors) -> list[Any]:
    """Reshapes tensors of rank 0 to one element."""
    return [x if x is None or rank(g, x) else reshaped(g, x, [1]) for x in tensors]


def _by_places(g: Emitter, op: str, x, dim, index, *more, **attributes) -> Any:
    """Emits an op of a tensor, an axis and indices along the axis; the tensors may have rank 0."""
    shape = list(g.type(x).shape)
    row, index, *sources = with_axis(g, x, index, *more)
    result = g.call(op, row, axis_of(g, row, dim), index, *sources, **attributes)
    return reshaped(g, result, shape) if not shape and g.type(result).size == 1 else result


# ---- gather and scatter


def _part(g, src, index):
    """Returns the leading elements of each axis, as many as ``index`` has."""
    for axis, extent in enumerate(g.type(index).shape if rank(g, src) else ()):
        src = cut(g, src, axis, 0, extent)
    return src


@ATEN.add("gather")
def gather(g, input, dim, index, *, sparse_grad=False):
    if 0 in g.type(index).shape:  # torch asks neither for its type nor for its axes
        return views.expand(g, g.constant(0, g.type(input).dtype), list(g.type(index).shape))
    result = _by_places(g, "aten::gather", input, dim, index)
    return reshaped(g, result, list(g.type(index).shape))


@ATEN.add("scatter")
def scatter(g, input, dim, index, src=None, *, value=None, reduce=None):
    """Scatters ``src``, a tensor with at least the extents of ``index``, or a number."""
    value, src = (src, None) if src is not None and not is_tensor(src) else (value, src)
    source = like(g, input, value if src is None else src)
    source = views.expand(g, source, list(g.type(index).shape)) if src is None else _part(g, source, index)
    if reduce is None:
        return _by_places(g, "aten::scatter", input, dim, index, source)
    ops = {"add": "aten::scatter_add", "multiply": "tm::scatter_prod"}
    return _by_places(g, ops[reduce], input, dim, index, source)


@ATEN.add("scatter_add")
def scatter_add(g, input, dim, index, src):
    return _by_places(g, "aten::scatter_add", input, dim, index, _part(g, src, index))


@ATEN.add("scatter_reduce")
def scatter_reduce(g, input, dim, index, src, reduce, *, include_self=True):
    options = {"reduce": reduce, "include_self": include_self}
    return _by_places(g, "aten::scatter_reduce", input, dim, index, _part(g, src, index), **options)


# ---- along one axis


@ATEN.add("index_select", "index_select_copy")
def index_select(g, input, dim, index):
    return _by_places(g, "aten::index_select", input, dim, index)


@ATEN.add("index_copy")
def index_copy(g, input, dim, index, source):
    return _by_places(g, "aten::index_copy", input, dim, index, source)


@ATEN.add("index_add")
def index_add(g, input, dim, index, source, *, alpha=1):
    alpha = number_of(g.type(input).dtype, alpha)
    return _by_places(g, "aten::index_add", input, dim, index, source, alpha=alpha)


@ATEN.add("index_reduce")
def index_reduce(g, input, dim, index, source, reduce, *, include_self=True):
    options = {"reduce": reduce, "include_self": include_self}
    return _by_places(g, "aten::index_reduce", input, dim, index, source, **options)


@ATEN.add("index_fill")
def index_fill(g, input, dim, index, value):
    shape = list(g.type(input).shape)
    row, index = with_axis(g, input, index)
    filled = g.call("aten::index_fill", row, axis_of(g, row, dim), index, like(g, input, value))
    return reshaped(g, filled, shape)


@ATEN.add("take_along_dim")
def take_along_dim(g, input, indices, dim=None):
    return g.call("aten::take_along_dim", input, indices, None if dim is None else axis_of(g, input, dim))


# ---- masks


@ATEN.add("masked_fill")
def masked_fill(g, input, mask, value):
    return g.call("aten::masked_fill", input, cast(g, mask, bool), like(g, input, value))


@ATEN.add("masked_scatter")
def masked_scatter(g, input, mask, source):
    return g.call("aten::masked_scatter", input, cast(g, mask, bool), source)


ATEN.add("masked_select")(lambda g, input, mask: g.call("aten::masked_select", input, cast(g, mask, bool)))


# ---- search


@ATEN.add("bucketize")
def bucketize(g, input, boundaries, *, out_int32=False, right=False):
    value, limits = promoted(g, input, boundaries)
    return cast(g, g.call("aten::bucketize", value, limits, right), "int32" if out_int32 else "int64")


@ATEN.add("searchsorted")
def searchsorted(
    g, sorted_sequence, input=None, *, out_int32=False, right=False, side=None, sorter=None, self=None
):
    limits, value = promoted(g, sorted_sequence, self if input is None else input)
    places = g.call("aten::searchsorted", limits, value, right or side == "right", sorter)
    return cast(g, places, "int32" if out_int32 else "int64")
