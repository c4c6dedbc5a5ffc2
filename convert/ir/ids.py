"""Numbers of expressions and nodes, unique in a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.ir.node import Node

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import TracedModule


class Ids:
    """The next free numbers of a model; its graphs share one object."""

    __slots__ = ("expr", "node")

    def __init__(self) -> None:
        self.expr = 0
        self.node = 0

    def reserve(self, graph: InternalGraph) -> None:
        """Reserves the numbers of a graph, so that they are not used again."""
        for node in graph.inputs:
            self._see(node)
            if node.expr is not None:
                self.expr = max(self.expr, node.expr.id + 1)
        for expr in graph:
            self.expr = max(self.expr, expr.id + 1)
            for node in expr.outputs:
                self._see(node)

    def _see(self, node: Node) -> None:
        self.node = max(self.node, node.id + 1)

    def number(self, expr: Expr) -> None:
        """Gives an expression and its results the next numbers."""
        expr.id, self.expr = self.expr, self.expr + 1
        for node in expr.outputs:
            node.id, self.node = self.node, self.node + 1


def ids_of(graph: InternalGraph) -> Ids:
    """Returns the numbers of the model of a graph, or of the graph alone."""
    if graph.ids is None:
        graph.ids = Ids()
        graph.ids.reserve(graph)
    return graph.ids


def number(module: TracedModule) -> None:
    """Numbers the expressions and nodes of a model that a frontend has built, in order of execution."""
    ids = Ids()
    for _, each in module.modules():
        for graph in each.graphs.values():
            graph.ids = ids
            for expr in [*(node.expr for node in graph.inputs if node.expr is not None), *graph]:
                ids.number(expr)


def share_ids(module: TracedModule) -> None:
    """Makes all graphs of a model share one object, from which they take new numbers."""
    ids = Ids()
    for _, each in module.modules():
        for graph in each.graphs.values():
            graph.ids = ids
            ids.reserve(graph)


def adopt(part: TracedModule, model: TracedModule) -> None:
    """Renumbers the expressions of a model that became a submodule of another one, with numbers of that
    one.
    """
    assert model.graph is not None
    for _, each in part.modules():
        for graph in each.graphs.values():
            graph.ids = None
    renumber(part, ids_of(model.graph))


def renumber(module: TracedModule, ids: Ids) -> None:
    """Gives all expressions of a module that is put into a model new numbers."""
    for _, each in module.modules():
        for graph in each.graphs.values():
            if graph.ids is ids:
                continue
            graph.ids = ids
            for node in graph.inputs:
                if node.expr is not None:
                    ids.number(node.expr)
            for expr in graph:
                ids.number(expr)
