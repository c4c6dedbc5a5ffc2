"""``x[...]`` and ``x[...] = value``, their ATen forms, and take and put."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared import indexing
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import cast, is_tensor, reshaped
from tmconvert.ir.emitter import Emitter

ATEN, METHODS = Table(), Table()


@METHODS.add("__getitem__")
def getitem(g, self, index):
    """``x[index]``: a list that contains more than integers is a tuple; bytes are a mask."""
    return indexing.getitem(g, self, _masks(g, indexing.unlisted(index)), numbers_first=True)


@METHODS.add("__setitem__")
def setitem(g, self, index, value):
    return _written(g, self, _masks(g, indexing.unlisted(index)), value)


def _masks(g, index):
    if isinstance(index, tuple):
        return tuple(_masks(g, item) for item in index)
    return cast(g, index, bool) if is_tensor(index) and g.type(index).dtype == np.uint8 else index


def _written(g: Emitter, x, index, value, *, adds: bool = False, is_python: bool = True) -> Any:
    """Writes a value, which may have leading axes of extent 1 that the indexed part lacks."""
    type_ = g.type(x)
    value = cast(g, value, type_.dtype) if is_tensor(value) else g.constant(value, type_.dtype)
    shape = list(g.type(value).shape)
    while shape and shape[0] == 1:
        shape.pop(0)
    new = indexing.written(g, x, index, reshaped(g, value, shape), adds=adds, numbers_first=is_python)
    return reshaped(g, new, list(type_.shape))


@ATEN.add("index", "_unsafe_index")
def index(g, self, indices):
    """``indices`` are tensors or None, one per axis; tensors are broadcast together."""
    return indexing.getitem(g, self, _per_axis(g, indices))


@ATEN.add("index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(g, input, indices, values, accumulate=False, unsafe=False):
    if g.type(values).dtype != g.type(input).dtype:
        raise Refusal(f"index_put cannot write {g.type(values)} into {g.type(input)}")
    return _written(g, input, _per_axis(g, indices), values, adds=accumulate, is_python=False)


def _per_axis(g: Emitter, indices: Any) -> tuple[Any, ...]:
    return _masks(g, tuple(slice(None) if each is None else each for each in indices))


ATEN.add("take")(lambda g, input, index: g.call("aten::take", input, index))


@ATEN.add("put")
def put(g, input, index, source, accumulate=False):
    """Writes elements by their flat indices."""
    row = reshaped(g, input, [g.type(input).size])
    places, values = (reshaped(g, each, [g.type(each).size]) for each in (index, source))
    row = g.call("aten::index_put", row, [places], values, accumulate)
    return reshaped(g, row, list(g.type(input).shape))
