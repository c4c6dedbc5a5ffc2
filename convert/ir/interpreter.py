"""Runs graphs on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal, TmconvertError, UnsupportedError, UsageError
from tmconvert.ir.arrays import as_array
from tmconvert.ir.expr import CallMethod, Expr, Input
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.symbolic.open_sizes import check_sizes, sizes_by_name
from tmconvert.ir.traced_module import Evaluate, TracedModule
from tmconvert.ir.tree import map_leaves
from tmconvert.ir.types import TensorType

# Python itself ends at 1000 frames; a call takes a handful.
MAX_CALL_DEPTH = 100


class Interpreter:
    """Evaluates the expressions of a graph with a ``{node: value}`` map.

    A tensor's value is an ``np.ndarray``, a module's a TracedModule. Values are dropped after
    their last use. Subclasses override ``run_expr`` to look at or change what is computed.
    """

    def __init__(self, graph: InternalGraph, evaluate: Evaluate) -> None:
        self.graph = graph
        self.evaluate = evaluate
        self.depth = 0

    def run(self, inputs: Sequence[Any]) -> Any:
        """Computes the result, in its structure. ``inputs`` match ``graph.inputs``."""
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
            del result
            for node in expr.outputs:
                remaining[node] = self.graph.use_count(node)
            for node in expr.inputs:
                remaining[node] -= 1
            for node in (*expr.inputs, *expr.outputs):
                if not remaining[node]:
                    values.pop(node, None)
        return map_leaves(lambda leaf: values[leaf] if isinstance(leaf, Node) else leaf, self.graph.result)

    def run_expr(self, expr: Expr, values: dict[Node, Any]) -> Any:
        """Computes the tree of results of one expression."""
        if isinstance(expr, CallMethod) and isinstance(values.get(expr.args[0]), TracedModule):
            graph = values[expr.args[0]].graph_for(expr.args, expr.kwargs)
            if graph is not None:
                return self.run_call(expr, graph, [values[node] for node in expr.inputs])
        return expr.interpret(values, self.evaluate)

    def run_call(self, expr: Expr, graph: InternalGraph, inputs: list[Any]) -> Any:
        """Computes a call of a module that has a graph."""
        if len(inputs) != len(graph.inputs) or len(graph.outputs) != len(expr.outputs):
            raise UnsupportedError(
                "TM2007",
                f"{graph.name or 'a module'} was not traced for this structure of arguments",
                source=expr.source,
                excerpt=repr(expr),
            )
        if self.depth >= MAX_CALL_DEPTH:
            raise UnsupportedError(
                "TM2006", f"module calls are nested more than {MAX_CALL_DEPTH} deep", source=expr.source
            )
        callee = type(self)(graph, self.evaluate)
        callee.depth = self.depth + 1
        return callee.run(inputs)


def interpret_graph(graph: InternalGraph, inputs: Sequence[Any], evaluate: Evaluate | None) -> Any:
    """``graph.interpret(*inputs)``."""
    owner = inputs[0] if inputs else None
    if evaluate is None and isinstance(owner, TracedModule) and owner.vocabulary is not None:
        evaluate = owner.vocabulary.evaluate
    if evaluate is None:
        raise UsageError(
            "TM6004", (f"graph {graph.name!r} has no module with a vocabulary that can evaluate its calls")
        )
    return Interpreter(graph, evaluate).run(inputs)


def run_module(module: TracedModule, inputs: Sequence[np.ndarray]) -> Any:
    """``module(*inputs)``. Raises UsageError TM6003, TM6014 for inputs that do not fit the model."""
    if module.graph is None or module.vocabulary is None:
        raise UsageError("TM6004", f"{module!r} has no graph to run")
    expected = len(module.graph.inputs) - 1
    if len(inputs) != expected:
        raise UsageError(
            "TM6003", f"{module.name or 'the model'} takes {expected} inputs, {len(inputs)} were given"
        )
    nodes = module.graph.inputs[1:]
    arrays = [as_array(value, _name_of(node)) for node, value in zip(nodes, inputs, strict=True)]
    _check_shapes(module, arrays)
    different = [_difference(node, array) for node, array in zip(nodes, arrays, strict=True)]
    try:
        result = Interpreter(module.graph, module.vocabulary.evaluate).run([module, *arrays])
    except Exception as error:
        has_other_ranks = any(map(_has_other_rank, nodes, arrays))
        if not any(different) or (
            isinstance(error, TmconvertError) and not has_other_ranks and not _is_misfit(error)
        ):
            raise
        message = f"the model cannot be run on these inputs: {'; '.join(filter(None, different))}"
        reason = error.message if isinstance(error, TmconvertError) else str(error)
        raise UsageError("TM6003", message, notes=[("it fails with", reason)]) from error
    return map_leaves(lambda leaf: np.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, result)


def _check_shapes(module: TracedModule, arrays: Sequence[np.ndarray]) -> None:
    """Raises UsageError TM6014 for sizes other than in the trace, where a traced model does not declare them
    dynamic.
    """
    if module.dynamic_shapes is None or module.graph is None:
        return
    shapes: dict[str, tuple[int, ...]] = {}
    for node, array in zip(module.graph.inputs[1:], arrays, strict=True):
        if isinstance(node, TensorNode) and node.shape is not None and isinstance(node.expr, Input):
            check_sizes(module.dynamic_shapes, node.expr.name, node.shape, array.shape)
            shapes[node.expr.name] = array.shape
    sizes_by_name(module.dynamic_shapes, shapes)


def _has_other_rank(node: Node, array: np.ndarray) -> bool:
    return isinstance(node, TensorNode) and node.shape is not None and len(node.shape) != array.ndim


def _is_misfit(error: TmconvertError) -> bool:
    """Whether a call was refused since NumPy, or Python, failed on its arguments."""
    return isinstance(error.__cause__, Refusal) and error.__cause__.__cause__ is not None


def _difference(node: Node, array: np.ndarray) -> str:
    """How an array differs from the input that was recorded; empty where it does not."""
    if not isinstance(node, TensorNode) or node.shape is None or node.dtype is None:
        return ""
    given = TensorType(array.dtype, array.shape)
    return "" if given == node.type else f"{_name_of(node)} is {given}, and was recorded as {node.type}"


def _name_of(node: Node) -> str:
    return f"the input {node.expr.name if isinstance(node.expr, Input) else node.name!r}"


def _bind(structure: Any, result: Any, values: dict[Node, Any]) -> None:
    if isinstance(structure, Node):
        values[structure] = result
    elif isinstance(structure, dict):
        for key, child in structure.items():
            _bind(child, result[key], values)
    elif isinstance(structure, (tuple, list)):
        for child, part in zip(structure, result, strict=True):
            _bind(child, part, values)
