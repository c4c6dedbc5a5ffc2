"""Sorting and distinct elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.unsigned import ordered_as_signed
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, reshaped, static_int
from tmconvert.frontends.shared.distinct import first_places, order_of
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.data_dependent import data_symbols

OPERATORS = OperatorTable()


@OPERATORS.add("TopK", since=10)
def top_k(g, X, K, *, axis=-1, largest=1, sorted=1):
    count = static_int(g, K, "the number of elements of TopK")
    return _top(g, X, count, axis, bool(largest))


OPERATORS.add("TopK")(lambda g, X, *, k, axis=-1: _top(g, X, k, axis, True))


def _top(g: Emitter, x, count: int, axis: int, is_largest: bool) -> Any:
    place = axis_of(g, x, axis)
    x, original = ordered_as_signed(g, x)
    if data_symbols([count]):  # the first of all in order
        parts = g.call("aten::sort", x, place, is_largest, True)
        values, places = (g.call("aten::slice", part, place, 0, count, 1) for part in parts)
    else:
        values, places = g.call("aten::topk", x, count, place, is_largest, True)
    return original(values), cast(g, places, np.int64)


@OPERATORS.add("Unique")
def unique(g, X, *, axis=None, sorted=1):
    """Distinct elements or slices; where they occur first; which one each is; how many there are."""
    if axis is None:
        x, place = reshaped(g, X, [-1]), 0
        values, inverse, counts = g.call("aten::_unique2", x, True, True, True)
    else:
        x, place = X, axis_of(g, X, axis)
        values, inverse, counts = g.call("aten::unique_dim", X, place, True, True, True)
    inverse, counts = cast(g, inverse, np.int64), cast(g, counts, np.int64)

    def places() -> Any:
        return first_places(g, inverse, g.type(counts).shape[0])

    if sorted:
        return values, places, inverse, counts
    order = order_of(g, places())
    ranks = order_of(g, order)
    values = g.call("aten::index_select", values, place, order)
    return (
        values,
        lambda: g.call("aten::index_select", places(), 0, order),
        g.call("aten::index_select", ranks, 0, inverse),
        g.call("aten::index_select", counts, 0, order),
    )
