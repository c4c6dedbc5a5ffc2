"""Merges a reduction of a reduction: mean over W, then over H, is one mean over H and W."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmconvert.ir import CallFunction, Expr, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.symbolics.op import Op

REDUCTIONS = ("aten::mean", "aten::sum", "aten::amax", "aten::amin")


class MergeReductions:
    name = "merge_reductions"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for outer in graph.exprs():
            inner = _inner(graph, outer)
            if inner is not None and isinstance(outer, CallFunction):
                self._merge(graph, inner, outer)
                changed = True
        return changed

    def _merge(self, graph: InternalGraph, inner: CallFunction, outer: CallFunction) -> None:
        emitter = GraphEmitter(
            graph,
            self.catalogue,
            source=outer.source,
            made_by=self.name,
            name=outer.output.name,
            before=outer,
        )
        merged = emitter.call(
            outer.function, inner.args[0], _merged_axes(inner, outer), outer.kwargs["keepdim"]
        )
        old = outer.output
        merged.qparams = old.qparams
        graph.replace_uses(old, merged)
        graph.remove(outer)
        graph.remove(inner)
        graph.rename(merged, old.name)


def _inner(graph: InternalGraph, outer: Expr) -> CallFunction | None:
    """The reduction of the same kind whose only user is ``outer``."""
    if not isinstance(outer, CallFunction) or outer.function not in REDUCTIONS:
        return None
    operand: Any = outer.args[0]
    inner = operand.expr
    if not isinstance(inner, CallFunction) or inner.function != outer.function:
        return None
    if graph.use_count(operand) != 1 or inner.kwargs["keepdim"] != outer.kwargs["keepdim"]:
        return None
    return inner


def _merged_axes(inner: CallFunction, outer: CallFunction) -> list[int]:
    """Axes of the inner operand that the two reduce together."""
    x = inner.args[0]
    assert isinstance(x, TensorNode)
    rank = x.type.rank
    first = {axis % rank for axis in inner.kwargs["dim"] or range(rank)}  # none means all
    left = [axis for axis in range(rank) if inner.kwargs["keepdim"] or axis not in first]
    second = {left[axis % len(left)] for axis in outer.kwargs["dim"] or range(len(left))}
    return sorted(first | second)
