"""Dead-code elimination."""

from __future__ import annotations

from tmconvert.ir import Expr, InternalGraph, TensorNode
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.passes.rewriting import PassRecord


class EliminateDeadCode:
    """Remove calls and constants whose results are not used.

    The first tensor that has a data-dependent size is used where that size is.
    """

    name = "eliminate_dead_code"

    def run(self, graph: InternalGraph) -> PassRecord:
        record, needed = PassRecord(self.name), set[str]()
        origins = _origins(graph)
        expr = graph.last
        while expr is not None:
            previous = expr.previous
            is_used = any(map(graph.is_used, expr.outputs))
            has_size = bool(origins and origins.get(expr, set()) & needed)
            if has_size and not is_used:
                record.refuse(expr, "nothing uses its elements, but its data-dependent size is used")
            if is_used or has_size:
                needed |= set(data_symbols(expr.kwargs)) if origins else set()
            else:
                graph.remove(expr)
                record.did(expr, "was removed: nothing uses it")
            expr = previous
        return record


def _origins(graph: InternalGraph) -> dict[Expr, set[str]]:
    """Returns the expressions that define data-dependent sizes, with these sizes."""
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
