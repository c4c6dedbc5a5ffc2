"""Changes of single expressions: their arguments, their functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.errors import GraphError
from tmconvert.ir.tree import Tree
from tmconvert.surgery.order import check_nodes
from tmconvert.surgery.transaction import Transaction
from tmconvert.surgery.type_inference import infer_changed

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.graph import InternalGraph


def set_arguments(graph: InternalGraph, expr: Expr, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> None:
    """Replaces the arguments of an expression of a source graph. Raises GraphError."""
    _check_member(graph, expr)
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise GraphError("TM3014", "arguments must be a tuple and a dict", source=expr.source)
    check_nodes(graph, (args, kwargs), expr)
    with Transaction(graph) as edit:
        edit.set_arguments(expr, args, kwargs)
        edit.changed[expr], edit.written = None, expr
        infer_changed(edit)


def set_target(graph: InternalGraph, expr: Expr, **attributes: str) -> None:
    """Sets what an expression of a source graph calls or reads: its function and label, its method, the name
    of its attribute.

    Raises GraphError TM3008, TM3014, TM3015 if the arguments do not match the new target.
    """
    with Transaction(graph) as edit:
        for name, value in attributes.items():
            edit.set_attribute(expr, name, value)
        edit.changed[expr], edit.written = None, expr
        infer_changed(edit)


def _check_member(graph: InternalGraph, expr: Expr) -> None:
    if expr.graph is not graph:
        raise GraphError("TM3002", f"{expr!r} is not among the expressions of graph {graph.name!r}")
