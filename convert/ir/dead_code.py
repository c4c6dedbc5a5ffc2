"""Dead-code elimination, in source graphs and normalized ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tmconvert.ir.node import TensorNode
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.graph import InternalGraph


def remove_dead_code(
    graph: InternalGraph,
    removed: Callable[[Expr], None] = lambda expr: None,
    kept: Callable[[Expr], None] = lambda expr: None,
    is_impure: Callable[[Expr], bool] | None = None,
) -> int:
    """Removes expressions whose results are not used, the last first, and returns their number.

    Calls without results stay in a source graph, since their effects are not known. The first tensor with a
    data-dependent size stays while the size is used. ``removed`` and ``kept`` are called with each expression
    that is removed, or that stays only for its size; expressions for which ``is_impure`` is true stay.
    """
    origins, needed, count = _origins(graph), set[str](), 0
    keeps_impure = graph.is_source()
    expr = graph.last
    while expr is not None:
        previous = expr.previous
        outputs = expr.outputs
        is_used = any(map(graph.is_used, outputs)) or (keeps_impure and not outputs)
        is_used = is_used or (is_impure is not None and is_impure(expr))
        has_size = bool(origins and origins.get(expr, set()) & needed)
        if has_size and not is_used:
            kept(expr)
        if is_used or has_size:
            needed |= set(data_symbols(expr.kwargs)) if origins else set()
        else:
            graph.remove(expr)
            removed(expr)
            count += 1
        expr = previous
    return count


def _origins(graph: InternalGraph) -> dict[Expr, set[str]]:
    """Returns the expressions that define data-dependent sizes, with these sizes."""
    origins: dict[Expr, set[str]] = {}
    seen: set[str] = set()
    for expr in graph:
        for node in expr.outputs:
            if isinstance(node, TensorNode) and Dim in map(type, node.shape or ()):
                found = set(data_symbols(node.shape)) - seen
                if found:
                    origins.setdefault(expr, set()).update(found)
                    seen |= found
    return origins
