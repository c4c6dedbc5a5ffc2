"""Removes expressions whose results nothing uses."""

from __future__ import annotations

from tmconvert.ir import Expr, InternalGraph, TensorNode
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim


class EliminateDeadCode:
    """A size that only the data tells is used, too: of the first tensor that has it."""

    name = "eliminate_dead_code"

    def run(self, graph: InternalGraph) -> bool:
        changed, needed = False, set[str]()
        origins = _origins(graph)
        expr = graph.last
        while expr is not None:
            previous = expr.previous
            if any(map(graph.is_used, expr.outputs)) or (origins and origins.get(expr, set()) & needed):
                needed |= set(data_symbols(expr.kwargs)) if origins else set()
            else:
                graph.remove(expr)
                changed = True
            expr = previous
        return changed


def _origins(graph: InternalGraph) -> dict[Expr, set[str]]:
    """The expressions that are the first to give tensors of sizes that only the data tells, and these."""
    origins: dict[Expr, set[str]] = {}
    seen: set[str] = set()
    for expr in graph.exprs():
        for node in expr.outputs:
            if isinstance(node, TensorNode) and Dim in map(type, node.shape or ()):
                found = set(data_symbols(node.shape)) - seen
                if found:
                    origins.setdefault(expr, set()).update(found)
                    seen |= found
    return origins
