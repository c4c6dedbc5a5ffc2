"""Round weights to their quantization parameters, for float models with fake quantization."""

from __future__ import annotations

from tmconvert.ir import Constant, InternalGraph, TensorNode
from tmconvert.ir.fake_quant import fake_quantize


def bake_weights(graph: InternalGraph) -> int:
    """Fake-quantize each constant of a normalized graph that has QParams, and return their number.

    The QParams stay: they apply to the rounded values, too.
    """
    count = 0
    for expr in graph:
        node = expr.outputs[0] if isinstance(expr, Constant) else None
        if isinstance(node, TensorNode) and node.qparams is not None:
            assert isinstance(expr, Constant)
            expr.value = fake_quantize(expr.value, node.qparams)
            count += 1
    return count
