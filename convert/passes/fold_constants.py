"""Computes what depends on constants only, or has no elements to depend on anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.symbolics.op import Op

# A result may be this much larger than what it is computed from (64 Mi elements at most).
MAX_ELEMENTS = 1 << 26
MAX_GROWTH = 4
MIN_LIMIT = 1 << 18  # masks of attention over windows are of such a size


class FoldConstants:
    name = "fold_constants"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for expr in graph.exprs():
            if not isinstance(expr, CallFunction):
                continue
            if _is_empty(expr):
                self._replace(graph, expr, np.zeros(expr.output.type.shape, expr.output.type.dtype))
            elif self._is_foldable(expr):
                arrays = map_leaves(_known, list(expr.args))
                self._replace(graph, expr, self.catalogue[expr.function].evaluate(arrays, expr.kwargs))
            else:
                continue
            changed = True
        return changed

    def _is_foldable(self, expr: CallFunction) -> bool:
        op = self.catalogue.get(expr.function)
        if op is None or op.kernel is None or len(expr.outputs) != 1:
            return False
        if not all(isinstance(node.expr, Constant) or _has_nothing(node) for node in expr.inputs):
            return False
        if is_symbolic((expr.kwargs, expr.output.shape)):
            return False
        if any(expr.kwargs.get("padding") or ()):  # the kernel allocates more than its result
            return False
        used = sum(node.type.size for node in expr.inputs if isinstance(node, TensorNode))
        return expr.output.type.size <= min(MAX_ELEMENTS, max(MAX_GROWTH * used, MIN_LIMIT))

    def _replace(self, graph: InternalGraph, expr: CallFunction, value: np.ndarray) -> None:
        old = expr.output
        node = TensorNode(graph.free_name(f"{old.name}_folded"), old.shape, old.dtype, qparams=old.qparams)
        constant = Constant(
            np.asarray(value), _name(expr), result=node, source=expr.source, made_by=self.name
        )
        graph.insert(constant, before=expr)
        graph.replace_uses(old, node)
        graph.remove(expr)
        graph.rename(node, old.name)


def _is_empty(expr: CallFunction) -> bool:
    """Whether the result has no elements, whatever the inputs are; targets rarely have kernels for that."""
    return len(expr.outputs) == 1 and _has_nothing(expr.output)


def _has_nothing(node: Any) -> bool:
    return isinstance(node, TensorNode) and not is_symbolic(node.shape) and node.type.size == 0


def _known(node: Any) -> np.ndarray | None:
    """What a constant holds; a tensor without elements is as good as one."""
    if node is None:
        return None
    return node.expr.value if isinstance(node.expr, Constant) else np.zeros(node.shape, node.dtype)


def _name(expr: CallFunction) -> str | None:
    """A constant made from one parameter keeps that parameter's name."""
    makers: list[Any] = [node.expr for node in leaves(expr.args) if node is not None]
    return makers[0].name if len(makers) == 1 and isinstance(makers[0], Constant) else None
