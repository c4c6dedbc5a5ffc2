"""Constant folding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.passes.rewriting import Emits, RewritePass

# A result may be this much larger than what it is computed from (64 Mi elements at most).
MAX_ELEMENTS = 1 << 26
MAX_GROWTH = 4
MIN_LIMIT = 1 << 18  # masks of attention over windows are of such a size


class FoldConstants(Emits, RewritePass[bool]):
    """Fold constants; results without elements become constants, too.

    The match says whether the result has no elements.
    """

    name = "fold_constants"

    def match(self, graph: InternalGraph, call: CallFunction) -> bool | None:
        if _is_empty(call):
            return True
        is_constant = all(isinstance(node.expr, Constant) or _has_no_elements(node) for node in call.inputs)
        return False if is_constant and len(call.outputs) == 1 else None

    def check(self, graph: InternalGraph, call: CallFunction, match: bool) -> str | None:
        return None if match else self._refusal(call)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: bool) -> str:
        if match:
            self._replace(
                graph, call, [np.zeros(node.type.shape, node.type.dtype) for node in _results(call)]
            )
            return "is a constant now: it has no elements"
        arrays = map_leaves(_known, list(call.args))
        self._replace(graph, call, [self.catalogue[call.function].evaluate(arrays, call.kwargs)])
        return "is a constant now: its operands are constants"

    def _refusal(self, call: CallFunction) -> str | None:
        op = self.catalogue.get(call.function)
        if op is None or op.kernel is None:
            return f"{call.function} has no reference kernel to compute it"
        if op.is_random:
            return "its result is random"
        if is_symbolic((call.kwargs, call.output.shape)):
            return "one of its sizes is symbolic"
        if any(call.kwargs.get("padding") or ()):  # the kernel allocates more than its result
            return "the memory for a padded operand has no limit"
        used = sum(node.type.size for node in call.inputs if isinstance(node, TensorNode))
        size = call.output.type.size
        if size > min(MAX_ELEMENTS, max(MAX_GROWTH * used, MIN_LIMIT)):
            return f"it has {size} elements, its operands {used}: the file would grow"
        return None

    def _replace(self, graph: InternalGraph, expr: CallFunction, values: list[np.ndarray]) -> None:
        made = []
        for old, value in zip(_results(expr), values, strict=True):
            name = graph.free_name(f"{old.name}_folded")
            node = TensorNode(name, old.shape, old.dtype, qparams=old.qparams)
            constant = Constant(
                np.asarray(value), _name(expr), result=node, source=expr.source, made_by=self.name
            )
            graph.insert(constant, before=expr)
            graph.replace_uses(old, node)
            made.append((node, old.name))
        graph.remove(expr)
        for node, called in made:
            graph.rename(node, called)


def _results(expr: CallFunction) -> list[TensorNode]:
    return [node for node in expr.outputs if isinstance(node, TensorNode)]


def _is_empty(expr: CallFunction) -> bool:
    """Whether all results have a size of 0, so that they are constants; few runtimes run them."""
    return bool(expr.outputs) and all(map(_has_no_elements, expr.outputs))


def _has_no_elements(node: object) -> bool:
    return isinstance(node, TensorNode) and not is_symbolic(node.shape) and node.type.size == 0


def _known(node: Any) -> np.ndarray | None:
    """Returns the array of a constant; for a tensor without elements, an empty array."""
    if node is None:
        return None
    return node.expr.value if isinstance(node.expr, Constant) else np.zeros(node.shape, node.dtype)


def _name(expr: CallFunction) -> str | None:
    """Returns the parameter's name for a constant computed from one parameter."""
    makers: list[Any] = [node.expr for node in leaves(expr.args) if node is not None]
    return makers[0].name if len(makers) == 1 and isinstance(makers[0], Constant) else None
