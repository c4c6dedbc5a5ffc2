"""The names of ``torch.fx`` for reading nodes and expressions.

An expression is what torch.fx calls a node; its results are nodes here. So the properties of all nodes are
those of the expression that computes them. ``docs/from-torch-fx.md`` compares all names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from tmconvert.ir.expr import Expr
from tmconvert.ir.function_names import name_of_function
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node
from tmconvert.ir.tree import Tree, replaced
from tmconvert.surgery import fx_node
from tmconvert.surgery.search import NodeFilter, walk_nodes

if TYPE_CHECKING:
    import tmconvert.surgery.graph as users
    from tmconvert.surgery.module import TracedModule


class FxNode(Node):
    """Names of ``torch.fx.Node``."""

    __slots__ = ()

    @property
    def op(self) -> str:
        """Returns "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output"."""
        return self._producer.op

    @property
    def target(self) -> str:
        """Returns the name of the input, attribute, function or method, or the path of the module."""
        return self._producer.target

    @target.setter
    def target(self, target: object) -> None:
        """Sets the called function or method, or the path read. Raises GraphError, changing nothing."""
        fx_node.set_node_target(self, target)

    @property
    def args(self) -> tuple[Tree, ...]:
        """Returns the arguments by position; those of a module's call without the module."""
        expr = self._producer
        if expr.op in ("placeholder", "get_attr"):
            return ()
        return expr.args[1:] if expr.op == "call_module" else expr.args

    @args.setter
    def args(self, args: tuple[Tree, ...]) -> None:
        """Sets the arguments by position. Raises GraphError, and nothing has changed."""
        fx_node.set_node_arguments(self, args, None)

    @property
    def kwargs(self) -> dict[str, Tree]:
        """Returns the arguments by keyword."""
        return self._producer.kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Tree]) -> None:
        """Sets the arguments by keyword. Raises GraphError, and nothing has changed."""
        fx_node.set_node_arguments(self, None, kwargs)

    def update_arg(self, idx: int, arg: Tree) -> None:
        """Sets one argument by position."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Tree) -> None:
        """Sets one argument by keyword."""
        self.kwargs = {**self.kwargs, key: arg}

    def insert_arg(self, idx: int, arg: Tree) -> None:
        """Inserts an argument before the one at a position. Raises GraphError, and nothing has changed."""
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Any], bool] = lambda user: True
    ) -> list[Expr]:
        """Makes all users use another node, except those from which it is computed; returns the changed
        users.

        ``delete_user_cb`` returns whether a user is changed: an expression, or the output node. See
        ``graph.replace_node``.
        """
        return fx_node.replace_all_uses(self, replace_with, delete_user_cb)

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces an input of this node."""
        fx_node.replace_input(self, old_input, new_input)

    def append(self, x: Node) -> None:
        """Moves the expression of ``x`` after this one. Raises GraphError TM3011 where it is used before."""
        fx_node.move_next_to(self, x, after=True)

    def prepend(self, x: Node) -> None:
        """Moves the expression of ``x`` before this one. Raises GraphError TM3011 if that is too early."""
        fx_node.move_next_to(self, x, after=False)

    @property
    def all_input_nodes(self) -> list[Node]:
        """Returns the nodes among the arguments, each once, without modules."""
        return list(dict.fromkeys(node for node in self._producer.inputs if not node.is_module))

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
        return cast("FxGraph", graph).output_node()

    @property
    def prev(self) -> Node | OutputNode | None:
        """Returns the node before this one in ``graph.nodes``; None for the first."""
        expr = self._producer
        if (sibling := _sibling(expr, self, -1)) is not None:
            return sibling
        graph = expr.graph
        return None if graph is None or expr.op == "placeholder" else _last_before(graph, expr.previous)

    @property
    def graph(self) -> InternalGraph | None:
        """Returns the graph that the node is in; None after its removal."""
        return None if self.expr is None else self.expr.graph

    @property
    def stack_trace(self) -> str | None:
        """Returns the file, line and module of the source, where they are known."""
        source = self._producer.source
        return None if source is None else str(source)

    def format_node(self) -> str:
        """Returns the expression that computes the node, as ``print(graph)`` shows it."""
        return str(self._producer)

    def is_impure(self) -> bool:
        """Whether the node must stay though unused, as an input; a recorded call has no side effect."""
        return self._producer.op == "placeholder"

    @property
    def _producer(self) -> Expr:
        if self.expr is None:
            raise ValueError(f"{self} is in no graph")
        return self.expr


class OutputNode:
    """The end of a graph, as ``torch.fx`` has it: a node whose argument is the result.

    ``graph.output_node()`` returns it; it is the last of ``graph.nodes``, and not an expression.
    """

    op = "output"
    target = "output"
    name = "output"
    users: tuple[Expr, ...] = ()
    next = None

    def __init__(self, graph: FxGraph) -> None:
        self.top_graph = cast("users.InternalGraph", graph)
        self._meta: dict[str, Any] = {}

    @property
    def args(self) -> tuple[Tree, ...]:
        """Returns the result of the graph, as the only argument."""
        return (self.top_graph.result,)

    @args.setter
    def args(self, args: tuple[Tree, ...]) -> None:
        """Sets the result of the graph. Raises GraphError, and nothing has changed."""
        (result,) = args
        self.top_graph.reset_outputs(result)

    def update_arg(self, idx: int, arg: Tree) -> None:
        """Sets the result of the graph, which is the argument 0."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Returns another node in place of one."""
        self.args = replaced(self.args, old_input, new_input)

    @property
    def meta(self) -> dict[str, Any]:
        """Returns a dict for notes of one's own; it is not saved."""
        return self._meta

    @property
    def kwargs(self) -> dict[str, Tree]:
        """Returns no arguments."""
        return {}

    @property
    def all_input_nodes(self) -> list[Node]:
        """Returns the returned nodes, each once."""
        return list(dict.fromkeys(self.top_graph.outputs))

    def is_impure(self) -> bool:
        """Returns True, since the output node is never unused."""
        return True

    @property
    def prev(self) -> Node | OutputNode | None:
        """Returns the last node that is computed."""
        return _last_before(self.top_graph, self.top_graph.last)

    def __repr__(self) -> str:
        return "output"


class FxGraph(InternalGraph):
    """Names of ``torch.fx.Graph`` for reading."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._output_node: OutputNode | None = None

    @property
    def nodes(self) -> NodeList:
        """Returns the nodes: ``graph.nodes(recursive=True)`` to search in, ``graph.nodes`` to iterate over as
        in ``torch.fx``.
        """
        return NodeList(self)

    def find_nodes(self, *, op: str, target: object = None, sort: bool = True) -> list[Any]:
        """Returns the nodes of a kind and target, as ``torch.fx`` does.

        >>> graph.find_nodes(op="call_function", target=torch.relu)  # doctest: +SKIP
        [relu_out]
        """
        if op == "output":
            return [self.output_node()]
        exprs = [node.expr for node in self.inputs] if op == "placeholder" else self
        found = [expr for expr in exprs if expr is not None and expr.op == op]
        name = name_of_function(target) if callable(target) else target
        return [node for expr in found if name is None or expr.target == name for node in _tensors(expr)]

    @property
    def owning_module(self) -> TracedModule | None:
        """Returns the module whose graph this is."""
        return getattr(self.inputs[0], "owner", None) if self.inputs else None

    def output_node(self) -> OutputNode:
        """Returns the end of the graph as ``torch.fx`` has it: a node whose argument is the result."""
        if self._output_node is None:
            self._output_node = OutputNode(self)
        return self._output_node


class NodeList:
    """``graph.nodes``: iterated, the nodes as ``torch.fx`` lists them; called, a ``NodeFilter``.

    An iteration yields the inputs without ``self``, the tensors of the expressions, and the output node.
    ``graph.nodes(recursive=True)`` has the nodes of called modules, too, and modules.
    """

    def __init__(self, graph: FxGraph) -> None:
        self._graph = cast("users.InternalGraph", graph)

    def __call__(self, recursive: bool = True) -> NodeFilter:
        return NodeFilter(lambda: walk_nodes(self._graph, recursive))

    def __iter__(self) -> Iterator[Any]:
        yield from (node for node in self._graph.inputs if not node.is_module)
        for expr in self._graph:
            yield from _tensors(expr)
        yield self._graph.output_node()

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, node: object) -> bool:
        return getattr(node, "top_graph", None) is self._graph and not getattr(node, "is_module", False)


def _tensors(expr: Expr) -> list[Node]:
    return [node for node in expr.outputs if not node.is_module]


def _sibling(expr: Expr, node: object, step: int) -> Node | None:
    """Returns the input, or result of the same expression, that is next to a node."""
    if expr.op == "placeholder" and expr.graph is not None:
        row = [each for each in expr.graph.inputs if not each.is_module]
    else:
        row = _tensors(expr)
    place = next((i for i, each in enumerate(row) if each is node), -1) + step
    return row[place] if 0 <= place < len(row) else None


def _last_before(graph: InternalGraph, expr: Expr | None) -> Node | None:
    while expr is not None:
        if tensors := _tensors(expr):
            return tensors[-1]
        expr = expr.previous
    return next((node for node in reversed(graph.inputs) if not node.is_module), None)
