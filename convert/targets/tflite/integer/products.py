"""Replaces divisions by constants and negations by products with a constant, and adds constants in products.

TFLite's integer DIV overflows, and rounds more coarsely; its NEG knows no zero points. A sum without QParams
of its own is computed in the kernel of the product.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.lowering.rewriting import producers
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.operators import spec


def multiply_by_constants(graph: TargetGraph) -> TargetGraph:
    """Returns a copy of ``graph`` with products for negations within calls, and for quotients that are
    quantized.

    A negation that is a call of its own may become a lookup table, which is exact.
    """
    operators = [_product(graph, operator) for operator in graph.operators]
    return graph if operators == graph.operators else replace(graph, operators=operators)


def fuse_biases(graph: TargetGraph) -> TargetGraph:
    """Returns a copy of ``graph`` with products that add the constants of following sums, as their biases.

    The result of the product has no QParams: the source does not round it.
    """
    makers, uses = producers(graph), graph.use_counts()
    fused: dict[int, Operator] = {}
    gone: set[int] = set()
    for operator in graph.operators:
        made = _with_bias(operator, makers, uses) if operator.type == "ADD" else None
        if made is not None:
            product, fused[id(operator)] = made
            gone.add(id(product))
    if not fused:
        return graph
    operators = [fused.get(id(each), each) for each in graph.operators if id(each) not in gone]
    return replace(graph, operators=operators)


def _with_bias(
    operator: Operator, makers: dict[int, Operator], uses: dict[int, int]
) -> tuple[Operator, Operator] | None:
    """Returns the product before a sum, and the product with its bias; None for other sums."""
    activation = operator.attributes.get("fused_activation_function")
    for x, bias in (operator.inputs, operator.inputs[::-1]):
        product = None if x is None else makers.get(id(x))
        weights = None if product is None else spec(product.type).weights
        if x is None or product is None or weights is None or bias is None or bias.data is None:
            continue
        weight = product.inputs[weights.weight]
        own = product.inputs[weights.bias] if weights.bias < len(product.inputs) else None
        is_plain = product.attributes.get("fused_activation_function") in (None, "NONE")
        is_plain &= own is None or (own.data is not None and not own.data.any())
        channels = x.shape[-1]
        fits = bias.shape[-1:] == (channels,) and bias.data.size == channels
        if weight is None or not is_plain or not fits or uses[id(x)] != 1 or x.qparams is not None:
            continue
        data = bias.data.reshape(-1)
        whole = Value(f"{bias.name}_bias", data.dtype, data.shape, data)
        inputs = [*product.inputs, *[None] * (weights.bias + 1 - len(product.inputs))]
        inputs[weights.bias] = whole
        attributes = {**product.attributes}
        if activation is not None:
            attributes["fused_activation_function"] = activation
        return product, replace(product, inputs=inputs, outputs=operator.outputs, attributes=attributes)
    return None


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
