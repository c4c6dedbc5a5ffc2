"""Indices: gathering, scattering, one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import axis_of, cast, rank, reshaped, static_int, static_ints
from tmconvert.frontends.tflite.adapters.values import PREFIX
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)
_INDICES = (np.dtype(np.int32), np.dtype(np.int64))


def _index(g, indices):
    return indices if g.type(indices).dtype in _INDICES else cast(g, indices, np.int32)


@OPERATORS.add("GATHER")
def gather(g, x, indices, *, axis=0, batch_dims=0):
    count = rank(g, indices)
    place, batch = axis_of(g, x, axis), batch_dims + count if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(count, place):
        raise Refusal(f"GATHER along axis {place} has batch_dims {batch}, but indices of rank {count}")
    places = _index(g, indices)
    if batch:
        return _batched(g, x, places, place, batch)
    shape, picked = list(g.type(x).shape), list(g.type(places).shape)
    known = g.known(places)
    if not picked and known is not None:
        return g.call("aten::select", x, place, int(known))
    made = g.call("aten::index_select", x, place, reshaped(g, places, [-1]))
    return made if len(picked) == 1 else reshaped(g, made, [*shape[:place], *picked, *shape[place + 1 :]])


def _batched(g: Emitter, x, indices, axis: int, batch: int) -> Any:
    """Gathers from each part of the first axes with its own indices."""
    shape, picked = list(g.type(x).shape), list(g.type(indices).shape)
    between, rest = shape[batch:axis], shape[axis + 1 :]
    order = [*range(batch), axis, *range(batch, axis), *range(axis + 1, len(shape))]
    moved = x if order == list(range(len(shape))) else g.call("aten::permute", x, order)
    count: Any = 1
    for extent in shape[:batch]:
        count *= extent
    rows = reshaped(g, moved, [count * shape[axis], *between, *rest])
    places = reshaped(g, cast(g, indices, np.int64), [count, -1])
    starts = g.call("aten::mul", g.call("aten::arange", 0, count, 1), g.constant(shape[axis], np.int64))
    flat = g.call("aten::add", places, reshaped(g, starts, [count, 1]))
    made = g.call("aten::index_select", rows, 0, reshaped(g, flat, [-1]))
    made = reshaped(g, made, [*picked, *between, *rest])
    if not between:
        return made
    own = len(picked) - batch
    back = [
        *range(batch),
        *range(batch + own, batch + own + len(between)),
        *range(batch, batch + own),
        *range(batch + own + len(between), len(picked) + len(between) + len(rest)),
    ]
    return g.call("aten::permute", made, back)


@OPERATORS.add("GATHER_ND")
def gather_nd(g, x, indices):
    return g.call("aten::index", x, _columns(g, indices))


def _columns(g: Emitter, indices) -> list[Any]:
    """Returns the indices of each axis."""
    places, last = _index(g, indices), rank(g, indices) - 1
    count = g.type(places).shape[last]
    if not isinstance(count, int) or count < 1:
        raise Refusal(f"indices of {count} axes are not supported")
    return [g.call("aten::select", places, last, number) for number in range(count)]


@OPERATORS.add("SCATTER_ND")
def scatter_nd(g, indices, updates, shape):
    """Updates of one element are added."""
    zero = g.constant(np.zeros((), g.type(updates).dtype))
    whole = g.call("aten::expand", zero, static_ints(g, shape))
    return g.call("aten::index_put", whole, _columns(g, indices), updates, True)


@OPERATORS.add("EMBEDDING_LOOKUP")
def embedding_lookup(g, indices, table):
    if rank(g, table) == 2:
        return g.call("aten::embedding", table, _index(g, indices))
    return gather(g, table, indices)


@OPERATORS.add("ONE_HOT")
def one_hot(g, indices, depth, on, off, *, axis=0):
    count = rank(g, indices) + 1
    place = axis % count
    numbers = g.call("aten::arange", 0, static_int(g, depth, "a number of classes"), 1)
    shape = list(g.type(indices).shape)
    rows = g.call("aten::reshape", cast(g, indices, np.int64), [*shape[:place], 1, *shape[place:]])
    numbers = reshaped(g, numbers, [-1 if each == place else 1 for each in range(count)])
    return g.call("aten::where", g.call("aten::eq", rows, numbers), reshaped(g, on, []), reshaped(g, off, []))


OPERATORS.add("WHERE")(lambda g, condition: g.call("aten::nonzero", condition))
