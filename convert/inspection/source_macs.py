"""Multiply-accumulates of ATen-style ops."""

from __future__ import annotations

from math import prod

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.symbolics.registry import trait_of
from tmconvert.symbolics.traits import MatrixProduct, MultiplyAccumulates, Weights

Shape = tuple[int, ...]


def macs_of(graph: InternalGraph) -> int | None:
    """Returns the multiply-accumulates of a normalized graph; None where a shape is not known."""
    total = 0
    for expr in graph:
        if not isinstance(expr, CallFunction):
            continue
        weights, product = trait_of(expr, Weights), trait_of(expr, MatrixProduct)
        counted = trait_of(expr, MultiplyAccumulates)
        if weights is None and product is None and counted is None:
            continue
        operands = [_shape(node) for node in expr.inputs]
        result = _shape(expr.outputs[0])
        known = [each for each in operands if each is not None]
        if result is None or len(known) < len(operands):
            return None
        try:
            if weights is not None:
                total += prod(known[0] if weights.is_transposed else result) * prod(known[1][1:])
            elif product is not None:
                total += _product(known[product.first], known[product.first + 1], result)
            elif counted is not None:
                total += counted.count(known, result)
        except IndexError:
            return None
    return total


def _product(x: Shape, other: Shape, result: Shape) -> int:
    if len(x) == len(other) == 1 and len(result) == 2:  # an outer product
        return prod(result)
    summed = x[0] if len(x) == 3 and len(result) == 2 else 1  # of a batch of products
    return prod(result) * x[-1] * summed


def _shape(node: object) -> Shape | None:
    if not isinstance(node, TensorNode) or node.shape is None:
        return None
    return tuple(map(int, node.shape))
