"""The names of torch.fx for editing a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tmconvert.errors import GraphError, UsageError
from tmconvert.ir.expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.tree import Tree, leaves, map_leaves
from tmconvert.surgery.edits import Edits
from tmconvert.surgery.insertion import Insertion
from tmconvert.surgery.torch_fx import FxGraph


class FxEditing(Edits, FxGraph):
    """Names of ``torch.fx.Graph`` for editing. Types are inferred; a failed edit changes nothing."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._insertion: Insertion | None = None  # where the methods insert

    @contextmanager
    def inserting_before(self, node: object = None) -> Iterator[None]:
        """Inserts new calls before a node; before all others for None."""
        before = self.first if node is None else _expr(node)
        yield from _at(self, Insertion(self, before=before))

    @contextmanager
    def inserting_after(self, node: object = None) -> Iterator[None]:
        """Inserts new calls after a node, in order; at the end for None."""
        after = self.last if node is None else _expr(node)
        yield from _at(self, Insertion(self, after=after))

    def call_function(
        self,
        the_function: str | Callable[..., Any],
        args: tuple[Tree, ...] = (),
        kwargs: dict[str, Tree] | None = None,
        type_expr: object = None,
    ) -> Any:
        """Inserts a call of a function, by default at the end, and returns its node.

        ``the_function`` is an op (``aten::relu``), a qualified name, or a function of torch or ``operator``.

        >>> with graph.inserting_after(x):  # doctest: +SKIP
        ...     y = graph.call_function(torch.relu, (x,))
        """
        return self._inserted(lambda g: g.call(the_function, *args, **(kwargs or {})))

    def call_method(
        self,
        method_name: str,
        args: tuple[Tree, ...] = (),
        kwargs: dict[str, Tree] | None = None,
        type_expr: object = None,
    ) -> Any:
        """Inserts a call of a method of the tensor ``args[0]``, and returns its node."""
        return self._inserted(lambda g: g.call_method(method_name, *args, **(kwargs or {})))

    def call_module(
        self,
        module_name: str,
        args: tuple[Tree, ...] = (),
        kwargs: dict[str, Tree] | None = None,
        type_expr: object = None,
    ) -> Any:
        """Inserts a call of the submodule at a dotted path, and returns its node."""
        return self._inserted(lambda g: g.call_module(module_name, *args, **(kwargs or {})))

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Any:
        """Inserts the read of a parameter, buffer or submodule at a dotted path, and returns its node."""
        return self._inserted(lambda g: g.get_attr(qualified_name))

    def placeholder(
        self, name: str, type_expr: Any = None, *, shape: Any = None, dtype: Any = "float32"
    ) -> TensorNode:
        """Adds an input, and returns its node. Raises UsageError TM6063 without a shape."""
        if shape is None:
            raise UsageError("TM6063", f"the input {name} needs a shape: placeholder({name!r}, shape=...)")
        return self.add_input_node(shape, dtype, name)

    def output(self, result: Tree, type_expr: Any = None) -> Any:
        """Sets what the graph returns, and returns the output node."""
        self.reset_outputs(result)
        return self.output_node()

    def create_node(
        self,
        op: str,
        target: object,
        args: tuple[Tree, ...] = (),
        kwargs: dict[str, Tree] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Any:
        """Inserts a node of the kind ``op``; see the methods of these names. Raises UsageError TM6064."""
        if op in ("call_function", "call_method", "call_module"):
            node = getattr(self, op)(target, args or (), kwargs)
        elif op in ("get_attr", "placeholder"):
            node = getattr(self, op)(target)
        elif op == "output":
            node = self.output(*args)
        else:
            raise UsageError("TM6064", f"{op!r} is not a kind of node")
        if name is not None and isinstance(node, Node):
            node.name = self.free_name(name)
        return node

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Any:
        """Inserts a copy of the expression of a node, which may be of another graph, and returns its result.

        ``arg_transform`` returns the node of this graph for one of the other. The copy has the source
        location and the ``meta`` of the node.
        """
        expr = node.expr
        if expr is None:
            raise GraphError("TM3002", f"{node} is in no graph")
        result = self._inserted(lambda g: _copied(g, self, expr, arg_transform))
        for made, copied in zip(leaves(result), expr.outputs, strict=False):
            if isinstance(made, Node) and made.expr is not None:
                made.expr.source = expr.source
                made.with_notes_of(copied)
        return result

    def graph_copy(
        self, g: InternalGraph, val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Tree:
        """Inserts copies of all expressions of a graph, and returns the nodes of its result.

        ``val_map`` has nodes of this graph for those of the other, its inputs first; it gets all others.
        """
        for node in g.inputs:
            if isinstance(node, TensorNode) and node not in val_map:
                val_map[node] = self.add_input_node(node.shape or (), node.dtype, node.name)
        for expr in g:
            first = expr.outputs[0] if expr.outputs else None
            if isinstance(first, TensorNode) and first not in val_map:
                made = self.node_copy(first, val_map.__getitem__)
                rows = [made] if isinstance(made, Node) else made
                val_map.update(zip(expr.outputs, rows, strict=True))
        return map_leaves(lambda leaf: val_map[leaf] if isinstance(leaf, Node) else leaf, g.result)

    def _inserted(self, insert: Callable[[Insertion], Any]) -> Any:
        point = self._insertion
        with Insertion(self, after=self.last if point is None else point.last) as insertion:
            insertion.before = None if point is None else point.before
            result = insert(insertion)
        if point is not None:
            point.last = insertion.last
        return result


def _at(graph: FxEditing, point: Insertion) -> Iterator[None]:
    outer = graph._insertion
    graph._insertion = point
    try:
        yield
    finally:
        graph._insertion = outer


def _copied(g: Insertion, graph: FxEditing, expr: Expr, arg_transform: Callable[[Node], Any]) -> Any:
    if isinstance(expr, GetAttr):
        return g.get_attr(expr.target)
    if isinstance(expr, Constant):
        return g.constant(expr.value)
    if isinstance(expr, Input):
        node = expr.output
        return graph.add_input_node(node.shape or (), node.dtype, node.name)
    is_module = isinstance(expr.args[0], ModuleNode) if expr.args else False
    taken = expr.args[1:] if is_module else expr.args
    args, kwargs = map_leaves(
        lambda leaf: arg_transform(leaf) if isinstance(leaf, Node) else leaf, (taken, expr.kwargs)
    )
    if is_module:
        owner = expr.args[0].owner
        return g.call_module(expr.target if owner is None else owner, *args, **kwargs)
    if isinstance(expr, CallMethod):
        return g.call_method(expr.method, *args, **kwargs)
    assert isinstance(expr, CallFunction)
    return g.call(expr.function, *args, **kwargs)


def _expr(node: object) -> Expr | None:
    """Returns the expression of a node; None for the output node."""
    if isinstance(node, Expr):
        return node
    return node.expr if isinstance(node, Node) else None
