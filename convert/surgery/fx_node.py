"""The names of torch.fx for editing nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from tmconvert.errors import GraphError
from tmconvert.ir.expr import CallFunction, CallMethod, Expr, GetAttr, Input
from tmconvert.ir.tree import Tree, replaced
from tmconvert.surgery.order import precedes
from tmconvert.surgery.replacing import check_pair, replace_in
from tmconvert.surgery.transaction import Transaction
from tmconvert.surgery.type_inference import infer_changed

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.node import Node
    from tmconvert.surgery.torch_fx import FxGraph


def set_node_arguments(node: Node, args: tuple[Tree, ...] | None, kwargs: dict[str, Tree] | None) -> None:
    """Sets ``node.args`` and ``node.kwargs``; the ``args`` of a call of a module are without the module."""
    expr, graph = _placed(node)
    if isinstance(expr, (Input, GetAttr)):
        raise GraphError("TM3014", f"{node} has no arguments")
    own = expr.args if args is None else tuple(args)
    if args is not None and expr.op == "call_module":
        own = (expr.args[0], *own)
    graph.set_arguments(expr, own, dict(expr.kwargs if kwargs is None else kwargs))


def set_node_target(node: Node, target: Any) -> None:
    """Sets ``node.target``: another function, method, attribute or input name."""
    expr, graph = _placed(node)
    if isinstance(expr, CallFunction):
        vocabulary = getattr(getattr(graph.inputs[0], "owner", None), "vocabulary", None)
        expr.function = target if vocabulary is None else vocabulary.function_name(target)[0]
    elif isinstance(expr, CallMethod) and expr.op == "call_method":
        expr.method = target
    elif isinstance(expr, GetAttr):
        expr.name = target
    else:
        raise GraphError("TM3014", f"the target of {node} cannot be set: insert another call")


def replace_all_uses(node: Node, new: Node, chosen: Callable[[Any], bool]) -> list[Expr]:
    """``node.replace_all_uses_with``."""
    _, graph = _placed(node)
    check_pair(graph, node, new)
    with Transaction(graph) as edit:
        users = replace_in(edit, node, new, chosen, lambda: chosen(_users(graph).output_node()))
        infer_changed(edit)
    return users


def replace_input(node: Node, old: Node, new: Node) -> None:
    """``node.replace_input_with``."""
    expr, graph = _placed(node)
    graph.set_arguments(expr, replaced(expr.args, old, new), replaced(expr.kwargs, old, new))


def move_next_to(node: Node, moved: Node, *, after: bool) -> None:
    """``node.append(moved)``, ``node.prepend(moved)``."""
    (anchor, graph), (expr, other) = _placed(node), _placed(moved)
    if graph is not other or isinstance(expr, Input):
        raise GraphError("TM3002", f"{moved} cannot be moved to {node}")
    before = (graph.first if isinstance(anchor, Input) else anchor.next) if after else anchor
    if isinstance(before, Input):
        raise GraphError("TM3011", f"{moved} cannot be moved before the input {node}")
    if before is expr or expr is anchor:
        return
    late = [each for each in expr.inputs if before is not None and not _is_before(each.expr, before)]
    early = [
        user for each in expr.outputs for user in each.users if before is None or _is_before(user, before)
    ]
    if late or early:
        raise GraphError("TM3011", f"{moved} would not be defined where it is used")
    graph.move(expr, before)


def _is_before(expr: Expr | None, other: Expr) -> bool:
    return expr is not None and expr is not other and precedes(expr, other)


def _users(graph: InternalGraph) -> FxGraph:
    return cast("FxGraph", graph)


def _placed(node: Node) -> tuple[Expr, InternalGraph]:
    if node.expr is None or node.expr.graph is None:
        raise GraphError("TM3002", f"{node} is in no graph")
    return node.expr, node.expr.graph
