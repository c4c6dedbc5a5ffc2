"""Replaces divisions by constants and negations by products with a constant.

TFLite's integer DIV overflows, and rounds more coarsely; its NEG knows no zero points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.lowering.target_graph import Operator, TargetGraph, Value


def multiply_by_constants(graph: TargetGraph) -> TargetGraph:
    """Returns a copy of ``graph`` with products for negations within calls, and for quotients that are
    quantized.

    A negation that is a call of its own may become a lookup table, which is exact.
    """
    operators = [_product(graph, operator) for operator in graph.operators]
    return graph if operators == graph.operators else replace(graph, operators=operators)


def is_negation(operator: Operator) -> bool:
    """Whether an operator is a product with -1."""
    if operator.type != "MUL" or operator.inputs[1] is None:
        return False
    factor = operator.inputs[1].data
    return factor is not None and bool(np.all(factor == -1))


def _product(graph: TargetGraph, operator: Operator) -> Operator:
    factor = _factor(graph, operator)
    if factor is None:
        return operator
    return replace(operator, type="MUL", inputs=[operator.inputs[0], factor], attributes={})


def _is_within_call(graph: TargetGraph, result: Value) -> bool:
    """Whether ``result`` is an intermediate result, or one of several, as of sorting."""
    node = graph.node_of(result)
    return node is None or node.expr is None or len(node.expr.outputs) > 1


def _factor(graph: TargetGraph, operator: Operator) -> Value | None:
    """Returns the constant by which the first operand can be multiplied instead."""
    x, result = operator.inputs[0] if operator.inputs else None, operator.outputs[0]
    if x is None or x.is_constant:
        return None
    if operator.type == "NEG" and x.dtype == np.float32 and _is_within_call(graph, result):
        return Value(f"{result.name}_factor", x.dtype, (), np.array(-1, x.dtype))
    if operator.type != "DIV" or result.qparams is None:
        return None
    divisor = operator.inputs[1]
    if divisor is None or divisor.data is None:
        return None
    with np.errstate(all="ignore"):
        data = (1 / divisor.data.astype(np.float64)).astype(divisor.dtype)
    if not np.all(np.isfinite(data)):
        return None
    return Value(f"{divisor.name}_reciprocal", divisor.dtype, divisor.shape, data)
