"""Atomic edits: done as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.tree import Tree, leaves

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.graph import InternalGraph


class Transaction:
    """Edits one graph; an exception in the block undoes all that was done.

    ``changed`` are expressions whose results may have new types; ``written`` is the one whose target or
    arguments the user set.
    """

    def __init__(self, graph: InternalGraph) -> None:
        self.graph = graph
        self.changed: dict[Expr, None] = {}
        self.written: Expr | None = None
        self._undo: list[Callable[[], object]] = []
        self._edits = graph.edits

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return
        for undo in reversed(self._undo):
            undo()
        self.graph.forget_edits(self._edits)

    def on_error(self, undo: Callable[[], object]) -> None:
        """Adds a step that undoes something else."""
        self._undo.append(undo)

    def include(self, done: Transaction) -> None:
        """Undoes what another transaction of the same graph did, too."""
        self._undo += done._undo

    def insert(self, expr: Expr, before: Expr | None) -> None:
        """Inserts an expression before another, at the end for None."""
        self._keep_uses(expr.inputs)
        self.graph.insert(expr, before=before)
        self._undo.append(lambda: self.graph.remove(expr))

    def remove(self, expr: Expr) -> None:
        """Removes an expression whose results are not used."""
        self._keep_uses(expr.inputs)
        following = expr.next
        self.graph.remove(expr)
        self._undo.append(lambda: self.graph.insert(expr, before=following))

    def move(self, expr: Expr, before: Expr) -> None:
        """Moves an expression before another."""
        following = expr.next
        self.graph.move(expr, before)
        self._undo.append(lambda: self.graph.move(expr, following))

    def set_arguments(self, expr: Expr, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> None:
        """Replaces the arguments of an expression."""
        old = expr.args, expr.kwargs
        self._keep_uses([*expr.inputs, *(leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Node))])
        self.graph.relink(expr, args, kwargs)
        self._undo.append(lambda: self.graph.relink(expr, *old))

    def set_result(self, result: Tree) -> None:
        """Sets the result of the graph."""
        old = self.graph.result
        self.graph.set_result(result)
        self._undo.append(lambda: self.graph.set_result(old))

    def set_attribute(self, item: object, name: str, value: object) -> None:
        """Sets a plain attribute of an expression or a node."""
        old = getattr(item, name)
        setattr(item, name, value)
        self.graph.edits += 1
        self._undo.append(lambda: setattr(item, name, old))

    def set_type(self, node: TensorNode, shape: tuple[Any, ...] | None, dtype: Any) -> None:
        """Sets the recorded type of a tensor; no edit by itself, as it changes no result."""
        old = node.shape, node.dtype
        node.shape, node.dtype = shape, dtype
        self._undo.append(lambda: self._restore_type(node, *old))

    def _restore_type(self, node: TensorNode, shape: tuple[Any, ...] | None, dtype: Any) -> None:
        node.shape, node.dtype = shape, dtype

    def _keep_uses(self, nodes: Iterable[Node]) -> None:
        """Restores the order of users, too."""
        kept = [(node, dict(node.uses)) for node in dict.fromkeys(nodes)]

        def restore() -> None:
            for node, uses in kept:
                node.uses = uses

        self._undo.append(restore)
