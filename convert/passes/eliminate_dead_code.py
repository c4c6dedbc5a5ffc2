"""Removes expressions whose results nothing uses."""

from __future__ import annotations

from ..ir import InternalGraph


class EliminateDeadCode:
    name = "eliminate_dead_code"

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        expr = graph.last
        while expr is not None:
            previous = expr.previous
            if not any(graph.use_count(node) for node in expr.outputs):
                graph.remove(expr)
                changed = True
            expr = previous
        return changed
