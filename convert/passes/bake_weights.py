"""Fake quantization that stays: weights become the numbers that their grids have."""

from __future__ import annotations

from tmconvert.ir import Constant, InternalGraph, TensorNode
from tmconvert.ir.fake_quant import fake_quantize


def bake_weights(graph: InternalGraph) -> int:
    """Rounds each constant of a normalized graph that has parameters to its grid; the number of them.

    The parameters stay: they say of the rounded numbers what they said of the others.
    """
    count = 0
    for expr in graph.exprs():
        node = expr.outputs[0] if isinstance(expr, Constant) else None
        if isinstance(node, TensorNode) and node.qparams is not None:
            assert isinstance(expr, Constant)
            expr.value = fake_quantize(expr.value, node.qparams)
            count += 1
    return count
