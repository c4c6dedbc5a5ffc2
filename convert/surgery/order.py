"""The order of expressions, and dependencies between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tmconvert.errors import GraphError
from tmconvert.ir.expr import Expr, Input
from tmconvert.ir.node import Node
from tmconvert.ir.tree import Tree, leaves_of

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph


def nodes_of(tree: Tree) -> list[Node]:
    """Returns the nodes among the leaves of a tree, in order."""
    return leaves_of(Node, tree)


def made_since(new: Node, old: Node) -> set[Expr]:
    """Returns the expressions after ``old`` that ``new`` is computed by, directly or not."""
    if new.expr is None or old.expr is None or new.expr is old.expr or precedes(new.expr, old.expr):
        return set()
    between: set[Expr] = set()
    expr: Expr | None = new.expr
    while expr is not None and expr is not old.expr:
        between.add(expr)
        expr = expr.previous
    found: set[Expr] = set()
    pending = [new.expr]
    while pending:
        expr = pending.pop()
        if expr not in between or expr in found:
            continue
        found.add(expr)
        pending.extend(node.expr for node in expr.inputs if node.expr is not None)
    return found


def precedes(first: Expr, second: Expr) -> bool:
    """Whether an expression of a graph comes before another one; formal inputs come first.

    It searches in both directions, so that close expressions are found quickly.
    """
    if isinstance(first, Input) or isinstance(second, Input):
        return isinstance(first, Input) and not isinstance(second, Input)
    later, earlier = first.next, first.previous
    while later is not None or earlier is not None:
        if later is second:
            return True
        if earlier is second:
            return False
        later = later.next if later is not None else None
        earlier = earlier.previous if earlier is not None else None
    return False


def last_of(exprs: Iterable[Expr]) -> Expr | None:
    """Returns the last of some expressions of one graph; None without any that is not a formal input."""
    last: Expr | None = None
    for expr in exprs:
        if not isinstance(expr, Input) and (last is None or precedes(last, expr)):
            last = expr
    return last


def check_nodes(graph: InternalGraph, tree: Tree, reader: Expr | None = None) -> None:
    """Raises GraphError where a tree has a node of another graph, or one defined at ``reader`` or later."""
    for node in nodes_of(tree):
        if node.expr is None or node.expr.graph is not graph:
            raise GraphError("TM3002", f"{node} is not a node of graph {graph.name!r}")
        if reader is not None and (node.expr is reader or not precedes(node.expr, reader)):
            raise GraphError("TM3011", f"{node} is not defined before {reader!r}", source=reader.source)
