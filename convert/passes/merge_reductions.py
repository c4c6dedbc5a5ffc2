"""Merge reductions of reductions: mean over W, then over H, is one mean over H and W."""

from __future__ import annotations

from typing import Any

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import is_call
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Reduction


class MergeReductions(Emits, RewritePass[CallFunction]):
    """Merge two reductions of the same kind into one over the axes of both.

    The match is the first reduction.
    """

    name = "merge_reductions"

    def takes(self, function: str) -> bool:
        return op_has(function, Reduction)

    def match(self, graph: InternalGraph, call: CallFunction) -> CallFunction | None:
        x: Any = call.args[0]
        return x.expr if is_call(x.expr, call.function) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str | None:
        if graph.use_count(match.output) != 1:
            return "its input has other users"
        if match.kwargs["keepdim"] != call.kwargs["keepdim"]:
            return f"only one of it and `{match.output.name}` keeps the reduced axes"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str:
        self._merge(graph, match, call)
        return f"was merged with `{match.output.name}`"

    def _merge(self, graph: InternalGraph, inner: CallFunction, outer: CallFunction) -> None:
        emitter = self.emitter(outer)
        merged = emitter.call(
            outer.function, inner.args[0], _merged_axes(inner, outer), outer.kwargs["keepdim"]
        )
        old = outer.output
        merged.qparams = old.qparams
        graph.replace_uses(old, merged)
        graph.remove(outer)
        graph.remove(inner)
        graph.rename(merged, old.name)


def _merged_axes(inner: CallFunction, outer: CallFunction) -> list[int]:
    """Axes of the inner operand that the two reduce together."""
    x = inner.args[0]
    assert isinstance(x, TensorNode)
    rank = x.type.rank
    first = {axis % rank for axis in inner.kwargs["dim"] or range(rank)}  # none means all
    left = [axis for axis in range(rank) if inner.kwargs["keepdim"] or axis not in first]
    second = {left[axis % len(left)] for axis in outer.kwargs["dim"] or range(len(left))}
    return sorted(first | second)
