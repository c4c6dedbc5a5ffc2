"""Calls that give what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import CallFunction, Constant, InternalGraph, TensorNode
from ..ir.dims import is_symbolic
from ..symbolics.ops.view import KEPT


class DropIdentities:
    """Padding by nothing, windows of one element, slices of all, views that move nothing, factors of one."""

    name = "drop_identities"

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for expr in list(graph.exprs()):
            if not isinstance(expr, CallFunction) or not _is_identity(expr):
                continue
            x, node = expr.args[0], expr.output
            # an output keeps its name, and what was quantized its parameters
            if not graph.is_output(node) and node.qparams is None:
                graph.replace_uses(node, x)
                graph.remove(expr)
                changed = True
        return changed


def _is_identity(expr: CallFunction) -> bool:
    if len(expr.outputs) != 1 or not expr.args or not isinstance(expr.args[0], TensorNode):
        return False
    if expr.function in _NEUTRAL and _is_neutral(expr):
        return expr.args[0].type == expr.output.type
    rule = IDENTITIES.get(expr.function)
    if rule is None or is_symbolic((expr.kwargs, expr.args[0].type.shape)):
        return False
    return expr.args[0].type == expr.output.type and rule(expr.kwargs)


# Second operands that change nothing, be the first -0 or no number.
_NEUTRAL = {"aten::mul": 1, "aten::div": 1, "aten::sub": 0}


def _is_neutral(expr: CallFunction) -> bool:
    other = expr.args[1]
    if not isinstance(other, TensorNode) or not isinstance(other.expr, Constant):
        return False
    is_plain = not any(value for value in expr.kwargs.values())
    return is_plain and bool(np.all(np.asarray(other.expr.value) == _NEUTRAL[expr.function]))


def _is_one_element(attributes: dict[str, Any]) -> bool:
    names = ("kernel_size", "stride")
    is_single = all(size == 1 for name in names for size in attributes[name])
    return is_single and not any(attributes["padding"])


def _is_average(attributes: dict[str, Any]) -> bool:
    return _is_one_element(attributes) and attributes["divisor_override"] in (None, 1)


def _moves_nothing(attributes: dict[str, Any]) -> bool:
    factors = zip(attributes["split"], attributes["index"], strict=True)
    kept = [extent for extent, chosen in factors if chosen == KEPT]
    moved = [place for place in attributes["order"] if kept[place] != 1]
    return moved == sorted(moved)


# What holds of the attributes of an identity whose result has the type of its operand.
IDENTITIES = {
    "aten::pad": lambda attributes: not any(attributes["pad"]),
    "aten::slice": lambda attributes: True,
    "aten::avg_pool2d": _is_average,
    "aten::max_pool2d": _is_one_element,
    "tm::view": _moves_nothing,
}
