"""Deep copies of models, without recursion over expressions."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.expr import Constant
from tmconvert.ir.node import ModuleNode

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import TracedModule

# what belongs to one run of one object
NOT_COPIED = frozenset({"watch_points", "watch_node_value", "end_points"})


def copied_module(module: TracedModule, memo: dict[int, Any]) -> TracedModule:
    """Returns an independent copy of a module and all that it contains.

    Modules and tensors that are shared stay shared in the copy. Tensors mapped from files, which are
    read-only, are not copied. ``memo`` is that of ``copy.deepcopy``.
    """
    known: TracedModule | None = memo.get(id(module))
    if known is not None:
        return known
    clone: TracedModule = type(module)(module.name, module.class_name, vocabulary=module.vocabulary)
    memo[id(module)] = clone
    clone.children = {name: copied_module(child, memo) for name, child in module.children.items()}
    clone.tensors = {name: _copied_array(array, memo) for name, array in module.tensors.items()}
    clone.attributes = deepcopy(module.attributes, memo)
    clone.buffers = set(module.buffers)
    clone.graphs = {key: _copied_graph(graph, memo) for key, graph in module.graphs.items()}
    special = {"name", "class_name", "vocabulary", "children", "tensors", "attributes", "buffers", "graphs"}
    for name, value in vars(module).items():
        if name not in special and name not in NOT_COPIED and not name.startswith("_"):
            setattr(clone, name, value if name == "rerun" else deepcopy(value, memo))
    clone.example, clone.original, _ = module.recording()
    return clone


def _copied_array(array: Any, memo: dict[int, Any]) -> Any:
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return array
    if id(array) not in memo:
        memo[id(array)] = array.copy()
    return memo[id(array)]


def _copied_graph(graph: InternalGraph, memo: dict[int, Any]) -> InternalGraph:
    clone = graph.copy()
    for node in clone.inputs:
        _set_owner(node, memo)
    for expr in clone:
        for node in expr.outputs:
            _set_owner(node, memo)
        if isinstance(expr, Constant):
            value = expr.stored
            is_module = isinstance(expr.outputs[0], ModuleNode)
            expr.stored = copied_module(value, memo) if is_module else _copied_array(value, memo)
    return clone


def _set_owner(node: object, memo: dict[int, Any]) -> None:
    if isinstance(node, ModuleNode) and node.owner is not None:
        node.owner = copied_module(node.owner, memo)
