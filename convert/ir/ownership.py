"""Resolves the module that each module node of a source graph refers to."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import GraphError
from tmconvert.ir.expr import Constant, Expr, GetAttr
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import ModuleNode
from tmconvert.ir.traced_module import TracedModule

NO_MODULE = "TM3008"
_UNKNOWN = object()


def assign_owners(graph: InternalGraph, module: TracedModule) -> None:
    """Sets ``owner`` of the module nodes in a graph of ``module``, whose children and tensors are there.

    Raises GraphError TM3008 for an attribute that does not exist or is not a module.
    """
    self_node = graph.inputs[0] if graph.inputs else None
    if not isinstance(self_node, ModuleNode):
        raise GraphError(NO_MODULE, "the first input of a graph is not its module")
    self_node.owner = module
    for expr in graph:
        for node in expr.outputs:
            if isinstance(node, ModuleNode):
                node.owner = _owner(expr)
            elif isinstance(expr, GetAttr):
                _attribute(expr)


def _owner(expr: Expr) -> TracedModule | None:
    """Returns the module that an expression evaluates to; None if it depends on a module argument."""
    value: Any = None
    if isinstance(expr, Constant):
        value = expr.value
    elif isinstance(expr, GetAttr):
        value = _attribute(expr)
        if value is _UNKNOWN:
            return None
    if not isinstance(value, TracedModule):
        raise GraphError(NO_MODULE, f"{expr.outputs[0]} is used as a module, but is not one")
    return value


def _attribute(expr: GetAttr) -> Any:
    holder = expr.args[0].owner
    if holder is None:
        return _UNKNOWN
    try:
        return holder.get(expr.name)
    except KeyError as error:
        message = f"{expr.outputs[0]} is the attribute {expr.name!r}, which does not exist"
        raise GraphError(NO_MODULE, message) from error
