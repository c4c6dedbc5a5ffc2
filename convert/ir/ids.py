"""Numbers of expressions and nodes, unique in a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.node import Node
    from tmconvert.ir.traced_module import TracedModule


class Ids:
    """The next free numbers of a model; its graphs share one object."""

    __slots__ = ("expr", "node")

    def __init__(self) -> None:
        self.expr = 0
        self.node = 0

    def number(self, expr: Expr) -> None:
        """Gives an expression and its results the next numbers."""
        expr.id, self.expr = self.expr, self.expr + 1
        for node in expr.outputs:
            self._number_node(node)

    def number_rest(self, expr: Expr) -> None:
        """Gives an expression and its results numbers, where they have none."""
        if expr._id is None:
            expr.id, self.expr = self.expr, self.expr + 1
        for node in expr.outputs:
            if node._id is None:
                self._number_node(node)

    def _number_node(self, node: Node) -> None:
        node.id, self.node = self.node, self.node + 1


def ids_of(graph: InternalGraph) -> Ids:
    """Returns the numbers of the model of a graph, or of the graph alone."""
    if graph.ids is None:
        share([graph])
    assert graph.ids is not None
    return graph.ids


def number(module: TracedModule) -> None:
    """Numbers the expressions and nodes of a model that a frontend has built, in order of execution."""
    ids = Ids()
    for graph in _graphs_of(module):
        graph.ids = ids
        for expr in _exprs(graph):
            ids.number(expr)


def number_rest(graph: InternalGraph) -> None:
    """Numbers the expressions and nodes of a graph and its subgraphs that have no number yet."""
    ids = ids_of(graph)
    for each in _with_subgraphs([graph]):
        is_new, each.ids = each.ids is None, each.ids or ids
        for expr in _exprs(each):
            (ids.number if is_new else ids.number_rest)(expr)


def share_ids(module: TracedModule) -> None:
    """Makes all graphs of a model share one object, from which they take new numbers.

    The graph of a flat model has numbers that those of its submodules have, too; they stay.
    """
    _share([[graph] for graph in _graphs_of(module)], Ids())


def share(graphs: Iterable[InternalGraph], ids: Ids | None = None) -> None:
    """Makes graphs and their subgraphs share one object, ``ids`` of the model that they were made from; of
    several expressions or nodes with the same number the first keeps it.
    """
    _share([list(_with_subgraphs(graphs))], ids or Ids())


def _share(groups: Iterable[Sequence[InternalGraph]], ids: Ids) -> None:
    """Makes all graphs share one object; numbers are unique in each group."""
    for group in groups:
        known, known_nodes = set[int](), set[int]()
        for graph in group:
            graph.ids = ids
            for expr in _exprs(graph):
                _keep_first(expr, known)
                for node in expr.outputs:
                    _keep_first(node, known_nodes)
        ids.expr = max([ids.expr, *(each + 1 for each in known)])
        ids.node = max([ids.node, *(each + 1 for each in known_nodes)])


def adopt(part: TracedModule, model: TracedModule) -> None:
    """Renumbers the expressions of a model that became a submodule of another, with numbers of that one."""
    assert model.graph is not None
    for graph in _graphs_of(part):
        graph.ids = None
    renumber(part, ids_of(model.graph))


def renumber(module: TracedModule, ids: Ids) -> None:
    """Gives all expressions of a module that is put into a model new numbers."""
    for graph in _graphs_of(module):
        if graph.ids is not ids:
            graph.ids = ids
            for expr in _exprs(graph):
                ids.number(expr)


def _keep_first(item: Expr | Node, known: set[int]) -> None:
    if item._id in known:
        item._id = None
    elif item._id is not None:
        known.add(item._id)


def _graphs_of(module: TracedModule) -> list[InternalGraph]:
    own = (graph for _, each in module.modules() for graph in each.graphs.values())
    return list(_with_subgraphs(own))


def _with_subgraphs(graphs: Iterable[InternalGraph]) -> Iterator[InternalGraph]:
    """Yields graphs, each once, and after each its subgraphs."""
    for graph in dict.fromkeys(graphs):
        yield graph
        yield from _with_subgraphs(graph.subgraphs)


def _exprs(graph: InternalGraph) -> Iterator[Expr]:
    yield from (node.expr for node in graph.inputs if node.expr is not None)
    yield from graph
