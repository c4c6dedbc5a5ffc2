"""Replaces divisions by constants by products: TFLite's integer DIV overflows, and rounds more coarsely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.lowering.target_graph import Operator, TargetGraph, Value


def quotients_in_products(graph: TargetGraph) -> TargetGraph:
    """Returns a copy of ``graph`` with products where the source quantizes such quotients."""
    operators = [_product(operator) for operator in graph.operators]
    return graph if operators == graph.operators else replace(graph, operators=operators)


def _product(operator: Operator) -> Operator:
    if operator.type != "DIV" or operator.outputs[0].qparams is None:
        return operator
    x, divisor = operator.inputs
    if x is None or x.is_constant or divisor is None or divisor.data is None:
        return operator
    with np.errstate(all="ignore"):
        data = (1 / divisor.data.astype(np.float64)).astype(divisor.dtype)
    if not np.all(np.isfinite(data)):
        return operator
    reciprocal = Value(f"{divisor.name}_reciprocal", divisor.dtype, divisor.shape, data)
    return replace(operator, type="MUL", inputs=[x, reciprocal])
