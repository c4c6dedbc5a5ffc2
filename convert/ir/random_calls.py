"""Calls that draw random numbers: which they are, and the seed they get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tmconvert.ir.emitter import OpDefinition
from tmconvert.ir.expr import CallFunction, Expr
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.subgraphs import subgraphs_of


def draws_random(expr: Expr, catalogue: Mapping[str, OpDefinition]) -> bool:
    """Whether a call, or one in a subgraph of it, draws random numbers."""
    if not isinstance(expr, CallFunction):
        return False
    op = catalogue.get(expr.function)
    if op is not None and op.is_random:
        return True
    return any(draws_random(each, catalogue) for graph in subgraphs_of(expr) for each in graph)


def random_calls(graph: InternalGraph, catalogue: Mapping[str, OpDefinition]) -> Iterator[CallFunction]:
    """Yields the calls of a graph that draw random numbers, in order, without those of subgraphs."""
    for expr in graph:
        if isinstance(expr, CallFunction) and (op := catalogue.get(expr.function)) and op.is_random:
            yield expr


def set_seed(graph: InternalGraph, catalogue: Mapping[str, OpDefinition], seed: int | None) -> None:
    """Gives the calls that draw random numbers a seed."""
    for call in random_calls(graph, catalogue):
        call.kwargs = {**call.kwargs, "seed": seed}
