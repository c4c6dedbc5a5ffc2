"""Checks the links of a graph that was edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.errors import GraphError
from tmconvert.ir.expr import Expr
from tmconvert.ir.node import Node

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph


def ensure_valid_links(graph: InternalGraph) -> None:
    """Checks the links of a graph that was edited since they were last checked. Raises GraphError."""
    if graph.links_checked_at != graph.edits:
        check_links(graph)
        graph.links_checked_at = graph.edits


def check_links(graph: InternalGraph) -> None:
    """Raises GraphError: TM3011 for a node that is used before it is defined, TM3012 for wrong links, TM3013
    for names that are used twice.
    """
    defined: set[Node] = set()
    names: set[str] = set()
    for node in graph.inputs:
        _define(graph, node, node.expr, defined, names)
    for expr in graph:
        for node in expr.inputs:
            if node not in defined:
                raise GraphError(
                    "TM3011", f"{node} is used before it is defined", source=expr.source, excerpt=repr(expr)
                )
            if expr not in node.uses:
                raise GraphError(
                    "TM3012", f"the uses of {node} lack {expr!r}: set arguments by graph.set_arguments"
                )
        for node in expr.outputs:
            _define(graph, node, expr, defined, names)
    for node in graph.outputs:
        if node not in defined:
            raise GraphError("TM3011", f"the result {node} is not defined in graph {graph.name!r}")


def _define(graph: InternalGraph, node: Node, expr: Expr | None, defined: set[Node], names: set[str]) -> None:
    if node.expr is not expr or expr is None or expr.graph is not graph or node in defined:
        raise GraphError("TM3012", f"{node} has another producer or belongs to another graph")
    if node.name and node.name in names:
        raise GraphError("TM3013", f"the name {node.name!r} is used twice in graph {graph.name!r}")
    defined.add(node)
    names.add(node.name)
