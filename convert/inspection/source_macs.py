"""Multiply-accumulates of ATen-style ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tmconvert.ir import CallFunction, InternalGraph, TensorNode

Shape = tuple[int, ...]


def macs_of(graph: InternalGraph) -> int | None:
    """Returns the multiply-accumulates of a normalized graph; None where a shape is not known."""
    total = 0
    for expr in graph:
        if not isinstance(expr, CallFunction):
            continue
        rule = _RULES.get(expr.function)
        if rule is None:
            continue
        result = _shape(expr.outputs[0])
        operands = [_shape(node) for node in expr.inputs]
        if result is None or None in operands:
            return None
        try:
            total += rule([each for each in operands if each is not None], result)
        except IndexError:
            return None
    return total


def _shape(node: Any) -> Shape | None:
    if not isinstance(node, TensorNode) or node.shape is None:
        return None
    return tuple(map(int, node.shape))


Rule = Callable[[list[Shape], Shape], int]


def _convolution(operands: list[Shape], result: Shape) -> int:
    return prod(result) * prod(operands[1][1:])


def _transposed(operands: list[Shape], result: Shape) -> int:
    return prod(operands[0]) * prod(operands[1][1:])


def _linear(operands: list[Shape], result: Shape) -> int:
    return prod(result) * operands[1][-1]


def _product(operands: list[Shape], result: Shape) -> int:
    return prod(result) * operands[0][-1]


def _sum_of_products(operands: list[Shape], result: Shape) -> int:
    return prod(result) * operands[1][-1]


def _attention(operands: list[Shape], result: Shape) -> int:
    query, key, value = operands[:3]
    return prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _recurrent(operands: list[Shape], result: Shape) -> int:
    """Each element of the sequence and of the batch meets each weight matrix once."""
    steps = prod(operands[0][:-1])
    return steps * sum(prod(each) for each in operands[1:] if len(each) == 2)


_RULES: Mapping[str, Rule] = {
    **{f"aten::conv{rank}d": _convolution for rank in (1, 2, 3)},
    **{f"aten::conv_transpose{rank}d": _transposed for rank in (1, 2, 3)},
    "aten::linear": _linear,
    **{f"aten::{name}": _product for name in ("matmul", "mm", "bmm", "mv", "dot")},
    "tm::matmul_nt": _product,
    **{f"aten::{name}": _sum_of_products for name in ("addmm", "baddbmm", "addmv")},
    "aten::scaled_dot_product_attention": _attention,
    **{f"aten::{name}": _recurrent for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")},
}
