"""Elements by their indices: gather, scatter, one-hot, and what depends on the data."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, known_numbers, rank, reshaped, static_int

OPERATORS = OperatorTable()


def wrapped(g, indices, extent):
    """Returns indices that count from the beginning; negative ones count from the end."""
    known = g.known(indices)
    if known is None:
        return g.call("tm::wrap_index", indices, extent)
    if not (known < 0).any():
        return indices
    return g.call(
        "aten::where",
        g.call("aten::lt", indices, g.constant(0, known.dtype)),
        g.call("aten::add", indices, g.constant(extent, known.dtype)),
        indices,
    )


@OPERATORS.add("Gather")
def gather(g, data, indices, *, axis=0):
    place = axis_of(g, data, axis)
    shape, extent = g.type(data).shape, g.type(data).shape[place]
    known = g.sizes(indices)
    if known is not None and known.ndim == 0:
        number = static_int(g, indices, "an index")
        return g.call("aten::select", data, place, number + extent if number < 0 else number)
    picks = wrapped(g, indices, extent)
    if place == 0 and len(shape) == 2 and g.known(data) is not None and known is None:
        return g.call("aten::embedding", data, picks)
    flat = g.call("aten::index_select", data, place, reshaped(g, picks, [-1]))
    return reshaped(g, flat, [*shape[:place], *g.type(indices).shape, *shape[place + 1 :]])


@OPERATORS.add("GatherElements")
def gather_elements(g, data, indices, *, axis=0):
    place = axis_of(g, data, axis)
    return g.call("aten::gather", data, place, wrapped(g, indices, g.type(data).shape[place]))


@OPERATORS.add("GatherND")
def gather_nd(g, data, indices, *, batch_dims=0):
    shape, where = g.type(data).shape, g.type(indices).shape
    depth = where[-1]
    picks = []
    for axis in range(batch_dims):
        numbers = g.call("aten::arange", 0, shape[axis], 1)
        picks.append(reshaped(g, numbers, [-1 if i == axis else 1 for i in range(len(where) - 1)]))
    for place in range(depth):
        one = g.call("aten::select", indices, len(where) - 1, place)
        picks.append(wrapped(g, cast(g, one, np.int64), shape[batch_dims + place]))
    return g.call("aten::index", data, picks)


_SCATTERS = {
    "none": "aten::scatter",
    "add": "aten::scatter_add",
    "mul": "tm::scatter_prod",
    "max": "tm::scatter_amax",
    "min": "tm::scatter_amin",
}


@OPERATORS.add("ScatterElements", "Scatter")
def scatter_elements(g, data, indices, updates, *, axis=0, reduction="none"):
    place = axis_of(g, data, axis)
    if reduction not in _SCATTERS:
        raise Refusal(f"reduction {reduction!r} is unknown")
    picks = wrapped(g, indices, g.type(data).shape[place])
    return g.call(_SCATTERS[reduction], data, place, picks, updates)


@OPERATORS.add("ScatterND")
def scatter_nd(g, data, indices, updates, *, reduction="none"):
    """Scatters slices; with a reduction of several at one place, elements of the flattened tensor."""
    shape, where = list(g.type(data).shape), g.type(indices).shape
    depth = where[-1]
    parts = [g.call("aten::select", indices, len(where) - 1, place) for place in range(depth)]
    picks = [wrapped(g, cast(g, part, np.int64), shape[place]) for place, part in enumerate(parts)]
    if reduction in ("none", "add"):
        return g.call("aten::index_put", data, picks, updates, reduction == "add")
    if reduction not in _SCATTERS:
        raise Refusal(f"reduction {reduction!r} is unknown")
    rows = math.prod(shape[:depth])
    width = math.prod(shape[depth:])
    row = picks[0]
    for place in range(1, depth):
        scaled = g.call("aten::mul", row, g.constant(shape[place], np.int64))
        row = g.call("aten::add", scaled, picks[place])
    index = g.call("aten::expand", reshaped(g, row, [-1, 1]), [math.prod(where[:-1]), width])
    flat = reshaped(g, data, [rows, width])
    source = reshaped(g, updates, [math.prod(where[:-1]), width])
    return reshaped(g, g.call(_SCATTERS[reduction], flat, 0, index, source), shape)


@OPERATORS.add("OneHot")
def one_hot(g, indices, depth, values, *, axis=-1):
    """Compares indices with 0, 1, ... along the new axis: what is out of range is off everywhere."""
    count = known_numbers(g, depth, "the depth of OneHot")
    extent = int(count.reshape(-1)[0])
    place = axis % (rank(g, indices) + 1)
    sizes = list(g.type(indices).shape)
    whole = cast(g, indices, np.int64)
    is_negative = g.call("aten::lt", whole, g.constant(0, np.int64))
    whole = g.call(
        "aten::where", is_negative, g.call("aten::add", whole, g.constant(extent, np.int64)), whole
    )
    picks = reshaped(g, whole, [*sizes[:place], 1, *sizes[place:]])
    numbers = g.constant(np.arange(extent).reshape([-1 if i == place else 1 for i in range(len(sizes) + 1)]))
    chosen = g.call("aten::eq", picks, numbers)
    off, on = (g.call("aten::select", values, 0, place_) for place_ in (0, 1))
    return g.call("aten::where", chosen, on, off)


@OPERATORS.add("NonZero")
def non_zero(g, X):
    if not rank(g, X):
        raise Refusal("NonZero of a tensor of rank 0 is not supported")
    return g.call("aten::permute", g.call("aten::nonzero", X), [1, 0])


@OPERATORS.add("Compress")
def compress(g, input, condition, *, axis=None):
    x = reshaped(g, input, [-1]) if axis is None else input
    place = 0 if axis is None else axis_of(g, input, axis)
    found = g.call("aten::nonzero", condition)
    return g.call("aten::index_select", x, place, g.call("aten::select", found, 1, 0))


@OPERATORS.add("TensorScatter")
def tensor_scatter(g, past_cache, update, write_indices=None, *, axis=-2, mode="linear"):
    """Writes ``update`` along an axis, from an index on that each element of the batch has for itself."""
    place = axis_of(g, past_cache, axis)
    shape, count = g.type(past_cache).shape, g.type(update).shape
    steps = reshaped(
        g, g.call("aten::arange", 0, count[place], 1), [-1 if i == place else 1 for i in range(len(shape))]
    )
    if write_indices is not None:
        starts = reshaped(g, write_indices, [-1, *[1] * (len(shape) - 1)])
        steps = g.call("aten::add", cast(g, starts, np.int64), steps)
    if mode == "circular":
        steps = g.call("aten::remainder", steps, g.constant(shape[place], np.int64))
    index = g.call("aten::expand", steps, list(count))
    return g.call("aten::scatter", past_cache, place, index, update)
