"""Replacement of nodes by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tmconvert.errors import GraphError
from tmconvert.ir.expr import Expr, Input
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.tree import replaced
from tmconvert.surgery.order import made_since, precedes
from tmconvert.surgery.transaction import Transaction
from tmconvert.surgery.type_inference import infer_changed, is_small_constant

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph

Chosen = Callable[[Expr], bool]


def replace_nodes(graph: InternalGraph, replacements: Mapping[Node, Node]) -> None:
    """``graph.replace_node``."""
    for old, new in replacements.items():
        check_pair(graph, old, new)
    with Transaction(graph) as edit:
        for old, new in reversed(list(replacements.items())):
            replace_in(edit, old, new)
        infer_changed(edit)


def replace_in(
    edit: Transaction,
    old: Node,
    new: Node,
    chosen: Chosen = lambda expr: True,
    chooses_result: Callable[[], bool] = lambda: True,
) -> list[Expr]:
    """Makes chosen users of ``old`` use ``new``, except those it is computed from; returns the changed."""
    if old is new:
        return []
    graph = edit.graph
    made_of = made_since(new, old)
    users = [user for user in old.users if user not in made_of and chosen(user)]
    _hoist(edit, new, users, made_of)
    for user in users:
        edit.set_arguments(user, replaced(user.args, old, new), replaced(user.kwargs, old, new))
    if _may_retype(old, new):
        edit.changed.update(dict.fromkeys(users))
    if graph.is_output(old) and chooses_result():
        edit.set_result(replaced(graph.result, old, new))
    return users


def _may_retype(old: Node, new: Node) -> bool:
    """Whether users may get results of other types, or not take the new node: it has another type, or a value
    that they may look at, as sizes and scales of quantizations are.
    """
    if not isinstance(old, TensorNode) or not isinstance(new, TensorNode):
        return True
    same = old.shape == new.shape and old.dtype == new.dtype and new.dtype is not None
    is_read = new.dtype is None or new.dtype.kind in "iu" or is_small_constant(old) or is_small_constant(new)
    return not same or is_read


def _hoist(edit: Transaction, new: Node, users: list[Expr], made_of: set[Expr]) -> None:
    """Moves what ``new`` is computed from before the first of its users."""
    if new.expr is None or isinstance(new.expr, Input):
        return
    first: Expr | None = None
    for user in users:
        if precedes(user, new.expr) and (first is None or precedes(user, first)):
            first = user
    if first is None:
        return
    later, expr = [], new.expr
    while expr is not first:
        if expr in made_of:
            later.append(expr)
        assert expr.previous is not None
        expr = expr.previous
    for each in reversed(later):
        edit.move(each, first)


def check_pair(graph: InternalGraph, old: Node, new: Node) -> None:
    """Raises GraphError TM3002, TM3014 where a node cannot take the place of another."""
    for node in (old, new):
        if not isinstance(node, Node):
            raise GraphError("TM3002", f"{node!r} is not a node of a graph")
        if node.expr is None or node.expr.graph is not graph:
            raise GraphError("TM3002", f"{node} is not a node of graph {graph.name!r}")
    if isinstance(old, TensorNode) is not isinstance(new, TensorNode):
        raise GraphError("TM3014", f"{old} and {new} are not of the same kind: a tensor and a module")
