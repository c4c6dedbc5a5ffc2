"""A call of the source, and those before it, as an elementwise function of one or two tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, TensorNode
from tmconvert.ir.tree import map_leaves
from tmconvert.lowering.target_graph import Value
from tmconvert.passes.patterns.matching import rule_of
from tmconvert.symbolics.op import Op

_MOST = 200  # calls that one table stands for


class ElementwiseFunction:
    """A node as an elementwise function of at most ``most`` quantized nodes."""

    def __init__(
        self, known: Mapping[TensorNode, Value], catalogue: Mapping[str, Op], result: TensorNode, most: int
    ) -> None:
        self.known, self.catalogue, self.result, self.most = known, catalogue, result, most
        self.calls: list[CallFunction] = []
        self.operands: list[TensorNode] = []
        self.is_found = self._follow(result) and 1 <= len(self.operands) <= most

    def _follow(self, node: Any) -> bool:
        """Returns the operands of which ``node`` is an elementwise function, and its calls in order.

        What has no parameters of its own is followed further, if that leads to no more than are asked for.
        """
        if isinstance(node.expr, Constant):
            return bool(np.size(node.expr.value) == 1)
        value = self.known.get(node) if node is not self.result else None
        if not broadcasts_to(node.type.shape, self.result.type.shape):
            return False
        if value is not None and value.qparams is not None and not value.qparams.inferred:
            self._end_at(node)
            return True
        kept = list(self.calls), list(self.operands)
        if self._follow_call(node.expr) and (value is None or len(self.operands) <= self.most):
            return True
        self.calls, self.operands = kept
        if value is not None:
            self._end_at(node)
        return value is not None

    def _end_at(self, node: Any) -> None:
        if node not in self.operands:
            self.operands.append(node)

    def _follow_call(self, expr: object) -> bool:
        if expr in self.calls:
            return True
        if not isinstance(expr, CallFunction) or len(expr.outputs) != 1 or len(self.calls) >= _MOST:
            return False
        rule = rule_of(expr, self.catalogue)
        if rule.kind != "any" or rule.axes or not all(self._follow(each) for each in expr.inputs):
            return False
        self.calls.append(expr)
        return True

    def __call__(self, *numbers: np.ndarray) -> np.ndarray:
        made: dict[Any, Any] = dict(zip(self.operands, numbers, strict=True))

        def operand(leaf: Any) -> Any:
            if leaf is None:
                return None
            return np.asarray(leaf.expr.value) if isinstance(leaf.expr, Constant) else made[leaf]

        for expr in self.calls:
            arguments = map_leaves(operand, list(expr.args))
            made[expr.output] = self.catalogue[expr.function].evaluate(arguments, expr.kwargs)
        return np.asarray(made[self.result])


def broadcasts_to(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a tensor of one shape broadcasts to the other."""
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return len(shape) <= len(other) and all(extent in (1, wanted) for extent, wanted in pairs)
