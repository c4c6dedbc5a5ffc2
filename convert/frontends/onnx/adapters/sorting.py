"""Sorting and distinct elements."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, reshaped, static_int
from tmconvert.frontends.shared.adapter_table import AdapterValue
from tmconvert.ir.emitter import Emitter

OPERATORS = OperatorTable()


@OPERATORS.add("TopK", since=10)
def top_k(
    g: Emitter, X: AdapterValue, K: AdapterValue, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> Any:
    count = static_int(g, K, "the number of elements of TopK")
    return g.call("aten::topk", X, count, axis_of(g, X, axis), bool(largest), True)


@OPERATORS.add("TopK")
def top_k1(g: Emitter, X: AdapterValue, *, k: int, axis: int = -1) -> Any:
    return g.call("aten::topk", X, k, axis_of(g, X, axis), True, True)


@OPERATORS.add("Unique")
def unique(g: Emitter, X: AdapterValue, *, axis: int | None = None, sorted: int = 1) -> Any:
    """The second result, the places of first occurrences, is not supported; order is that of sorting."""
    if not sorted:
        raise Refusal("Unique in the order of occurrence is not supported", "export with sorted=1")

    def places() -> Any:
        raise Refusal("the places of first occurrences are not supported")

    if axis is None:
        values, inverse, counts = g.call("aten::_unique2", reshaped(g, X, [-1]), True, True, True)
    else:
        values, inverse, counts = g.call("aten::unique_dim", X, axis_of(g, X, axis), True, True, True)
    return values, places, inverse, counts
