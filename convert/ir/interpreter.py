"""Runs graphs on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import UsageError
from .expr import CallMethod, Constant, Expr, GetAttr
from .graph import InternalGraph
from .node import Node
from .traced_module import Evaluate, TracedModule
from .tree import leaves, map_leaves


class Interpreter:
    """Walks the expressions of a graph with a ``{node: value}`` map.

    A tensor's value is an ``np.ndarray``, a module's a TracedModule. Values are dropped after
    their last use. Subclasses override ``run_expr`` to look at or change what is computed.
    """

    def __init__(self, graph: InternalGraph, evaluate: Evaluate) -> None:
        self.graph = graph
        self.evaluate = evaluate

    def run(self, inputs: Sequence[Any]) -> Any:
        """Values of the result, in its structure. ``inputs`` match ``graph.inputs``."""
        if len(inputs) != len(self.graph.inputs):
            raise UsageError(
                "TM6003",
                f"{self.graph.name or 'the model'} takes {len(self.graph.inputs)} inputs, "
                f"{len(inputs)} were given",
            )
        values: dict[Node, Any] = dict(zip(self.graph.inputs, inputs, strict=True))
        remaining = {node: self.graph.use_count(node) for node in self.graph.inputs}
        for expr in self.graph.exprs():
            result = self.run_expr(expr, values)
            _bind(expr.result, result, values)
            for node in expr.outputs:
                remaining[node] = self.graph.use_count(node)
            for node in expr.inputs:
                remaining[node] -= 1
                if not remaining[node]:
                    values.pop(node, None)
        return map_leaves(lambda leaf: values[leaf] if isinstance(leaf, Node) else leaf, self.graph.result)

    def run_expr(self, expr: Expr, values: dict[Node, Any]) -> Any:
        """The tree of values of one expression."""

        def value(leaf: Any) -> Any:
            return values[leaf] if isinstance(leaf, Node) else leaf

        if isinstance(expr, Constant):
            return expr.value
        if isinstance(expr, GetAttr):
            return values[expr.args[0]].get(expr.name)
        args, kwargs = map_leaves(value, expr.args), map_leaves(value, expr.kwargs)
        if isinstance(expr, CallMethod) and isinstance(args[0], TracedModule):
            graph = args[0].graph_for(args, kwargs)
            if graph is not None:
                formal = [
                    leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, (np.ndarray, TracedModule))
                ]
                return Interpreter(graph, self.evaluate).run(formal)
        return self.evaluate(expr, args, kwargs)


def run_module(module: TracedModule, inputs: Sequence[np.ndarray]) -> Any:
    """``module(*inputs)``."""
    if module.graph is None or module.vocabulary is None:
        raise UsageError("TM6004", f"{module!r} has no graph to run")
    return Interpreter(module.graph, module.vocabulary.evaluate).run([module, *map(np.asarray, inputs)])


def _bind(structure: Any, result: Any, values: dict[Node, Any]) -> None:
    if isinstance(structure, Node):
        values[structure] = result
    elif isinstance(structure, dict):
        for key, child in structure.items():
            _bind(child, result[key], values)
    elif isinstance(structure, (tuple, list)):
        for child, part in zip(structure, result, strict=True):
            _bind(child, part, values)
