"""The names of ``torch.fx`` for reading nodes and expressions.

An expression is what torch.fx calls a node; its results are nodes here. So all nodes answer with the names of
the expression that computes them. ``docs/from-torch-fx.md`` compares all names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tmconvert.ir.function_names import FunctionName
from tmconvert.ir.tree import Tree

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.node import Node
    from tmconvert.ir.search import NodeFilter


class FxNode:
    """Names of ``torch.fx.Node`` for reading."""

    __slots__ = ()

    expr: Expr | None

    @property
    def op(self) -> str:
        """Returns the kind of the expression: "placeholder", "get_attr", "call_function", "call_method",
        "call_module" or "output".
        """
        return op_of(self._producer)

    @property
    def target(self) -> str:
        """Returns the name of the input, attribute, function or method, or the path of the module."""
        return target_of(self._producer)

    @property
    def args(self) -> tuple[Tree, ...]:
        """Returns the arguments by position; those of a module's call without the module."""
        return arguments_of(self._producer)

    @property
    def kwargs(self) -> dict[str, Tree]:
        """Returns the arguments by keyword."""
        return self._producer.kwargs

    @property
    def all_input_nodes(self) -> list[Node]:
        """Returns the nodes among the arguments, each once, without modules."""
        return list(dict.fromkeys(node for node in self._producer.inputs if not is_module(node)))

    @property
    def next(self) -> Node | OutputNode | None:
        """Returns the node after this one in ``graph.nodes``; the last is the output node."""
        expr = self._producer
        if (sibling := _sibling(expr, self, 1)) is not None:
            return sibling
        graph = expr.graph
        if graph is None:
            return None
        following = expr.next if expr.op != "placeholder" else graph.first
        while following is not None:
            if tensors := _tensors(following):
                return tensors[0]
            following = following.next
        return graph.output_node()

    @property
    def prev(self) -> Node | OutputNode | None:
        """Returns the node before this one in ``graph.nodes``; None for the first."""
        expr = self._producer
        if (sibling := _sibling(expr, self, -1)) is not None:
            return sibling
        graph = expr.graph
        return None if graph is None or expr.op == "placeholder" else _last_before(graph, expr.previous)

    @property
    def meta(self) -> dict[str, Any]:
        """Returns a dict for notes of one's own; it is not saved."""
        return self._notes()

    def _notes(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def _producer(self) -> Expr:
        if self.expr is None:
            raise ValueError(f"{self} is in no graph")
        return self.expr


class OutputNode:
    """The end of a graph, as ``torch.fx`` has it: a node whose argument is the result.

    ``graph.output_node()`` returns it; it is the last of ``graph.nodes``, and no expression.
    """

    op = "output"
    target = "output"
    name = "output"
    users: tuple[Expr, ...] = ()
    next = None

    def __init__(self, graph: InternalGraph) -> None:
        self.top_graph = graph

    @property
    def args(self) -> tuple[Tree, ...]:
        """Returns the result of the graph, as the only argument."""
        return (self.top_graph.result,)

    @property
    def kwargs(self) -> dict[str, Tree]:
        """Returns no arguments."""
        return {}

    @property
    def all_input_nodes(self) -> list[Node]:
        """Returns the returned nodes, each once."""
        return list(dict.fromkeys(self.top_graph.outputs))

    @property
    def prev(self) -> Node | OutputNode | None:
        """Returns the last node that is computed."""
        return _last_before(self.top_graph, self.top_graph.last)

    def __repr__(self) -> str:
        return "output"


class NodeList:
    """``graph.nodes``: iterated, the nodes as ``torch.fx`` lists them; called, a ``NodeFilter``.

    An iteration yields the inputs without ``self``, the tensors of the expressions, and the output node.
    ``graph.nodes(recursive=True)`` has the nodes of called modules, too, and modules.
    """

    def __init__(self, graph: InternalGraph) -> None:
        self._graph = graph

    def __call__(self, recursive: bool = True) -> NodeFilter:
        from tmconvert.ir.search import NodeFilter, walk_nodes

        return NodeFilter(lambda: walk_nodes(self._graph, recursive))

    def __iter__(self) -> Iterator[Any]:
        yield from (node for node in self._graph.inputs if not is_module(node))
        for expr in self._graph:
            yield from _tensors(expr)
        yield self._graph.output_node()

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, node: object) -> bool:
        return getattr(node, "top_graph", None) is self._graph and not is_module(node)


def is_module(node: object) -> bool:
    from tmconvert.ir.node import ModuleNode

    return isinstance(node, ModuleNode)


def op_of(expr: Expr) -> str:
    """Returns the word of ``torch.fx`` for the kind of an expression."""
    from tmconvert.ir.expr import CallFunction, CallMethod, Input

    if isinstance(expr, Input):
        return "placeholder"
    if isinstance(expr, CallFunction):
        return "call_function"
    if isinstance(expr, CallMethod):
        return "call_module" if calls_module(expr) else "call_method"
    return "get_attr"


def calls_module(expr: Expr) -> bool:
    """Whether the first argument is the module that is called."""
    return getattr(expr, "method", "") == "__call__" and is_module(expr.args[0])


def target_of(expr: Expr, path: str = "") -> str:
    """Returns torch.fx's target: the name of an input, function or method, the path of an attribute.

    ``path`` is that of the module whose graph has the expression. The name of a function also equals the
    function itself.
    """
    from tmconvert.ir.expr import CallFunction, CallMethod, GetAttr

    if isinstance(expr, CallFunction):
        return FunctionName(expr.function)
    if isinstance(expr, CallMethod):
        return _module_path(expr.args[0], path) if calls_module(expr) else expr.method
    if isinstance(expr, GetAttr):
        holder = _module_path(expr.args[0], path)
        return f"{holder}.{expr.name}" if holder else expr.name
    return getattr(expr, "name", None) or str(expr.outputs[0])


def _module_path(node: Node, path: str) -> str:
    graph = node.expr.graph if node.expr is not None else None
    if node.expr is None or (graph is not None and graph.inputs and graph.inputs[0] is node):
        return path
    return target_of(node.expr, path)


def arguments_of(expr: Expr) -> tuple[Tree, ...]:
    """Returns the arguments by position as ``torch.fx`` has them."""
    if op_of(expr) in ("placeholder", "get_attr"):
        return ()
    return expr.args[1:] if calls_module(expr) else expr.args


def _tensors(expr: Expr) -> list[Node]:
    return [node for node in expr.outputs if not is_module(node)]


def _sibling(expr: Expr, node: object, step: int) -> Node | None:
    """Returns the input, or result of the same expression, that is next to a node."""
    if op_of(expr) == "placeholder" and expr.graph is not None:
        row = [each for each in expr.graph.inputs if not is_module(each)]
    else:
        row = _tensors(expr)
    place = next((i for i, each in enumerate(row) if each is node), -1) + step
    return row[place] if 0 <= place < len(row) else None


def _last_before(graph: InternalGraph, expr: Expr | None) -> Node | None:
    while expr is not None:
        if tensors := _tensors(expr):
            return tensors[-1]
        expr = expr.previous
    return next((node for node in reversed(graph.inputs) if not is_module(node)), None)
