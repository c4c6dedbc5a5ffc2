"""Merge concatenations of concatenations along one axis."""

from __future__ import annotations

from typing import Any

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Concatenates


class MergeConcats(Emits, RewritePass[list[CallFunction]]):
    """Merge the concatenations that a concatenation along the same axis joins; the match are these."""

    name = "merge_concats"

    def takes(self, function: str) -> bool:
        return op_has(function, Concatenates)

    def match(self, graph: InternalGraph, call: CallFunction) -> list[CallFunction] | None:
        made = [node.expr for node in _operands(call)]
        inner = [expr for expr in made if isinstance(expr, CallFunction) and _is_along(expr, call)]
        return list(dict.fromkeys(inner)) or None

    def check(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str | None:
        return None if self._merged(graph, match) else "what it joins has other users or QParams"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str:
        merged = self._merged(graph, match)
        parts: list[Any] = []
        for node in _operands(call):
            parts += _operands(node.expr) if node.expr in merged else [node]
        made = self.emitter(call).call(call.function, parts, **call.kwargs)
        graph.substitute(call.output, made)
        for expr in merged:
            graph.remove(expr)
        return "joins the parts of " + ", ".join(f"`{expr.output.name}`" for expr in merged)

    def _merged(self, graph: InternalGraph, match: list[CallFunction]) -> list[CallFunction]:
        """Returns the concatenations that nothing else uses and that have no QParams."""
        return [expr for expr in match if graph.use_count(expr.output) == 1 and expr.output.qparams is None]


def _operands(call: Any) -> list[TensorNode]:
    return list(call.args[0])


def _is_along(expr: CallFunction, call: CallFunction) -> bool:
    """Whether ``expr`` is the same op along the same axis."""
    if expr.function != call.function:
        return False
    rank = call.output.type.rank
    return bool(expr.kwargs["dim"] % rank == call.kwargs["dim"] % rank)
