"""Products of one tensor with a number, and polynomials of it, that steps of a graph compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.passes.patterns.matching import array_of, is_call, is_product, is_quotient, is_sum

DEGREE = 3  # of the highest power
MOST_STEPS = 24  # of an idiom in any form; in longer chains the number of paths may double with each step


class Product(NamedTuple):
    """A product of one number and tensors, and the tensors that are parts of it."""

    number: float
    factors: list[TensorNode]
    between: list[TensorNode]


def gated(call: CallFunction) -> Iterator[tuple[Product, TensorNode, TensorNode]]:
    """Yields (product, x, gate) for both orders of x * gate, times a number."""
    product = product_of(call) if is_product(call) or is_quotient(call) else None
    if product is not None and len(product.factors) == 2:
        first, second = product.factors
        yield product, first, second
        yield product, second, first


def is_near(found: Any, wanted: Any, x: TensorNode) -> bool:
    """Whether numbers are equal up to the rounding of the element type, and of half precision's constants."""
    eps = float(np.finfo(x.type.dtype).eps) if x.type.dtype.kind == "f" else 0.0
    return np.allclose(found, wanted, rtol=max(8 * eps, 1e-6), atol=1e-9)


def product_of(call: CallFunction) -> Product | None:
    """Returns what ``call`` multiplies, with products that it alone uses taken apart."""
    number, factors, between = 1.0, list[TensorNode](), list[TensorNode]()
    open_: list[tuple[Any, bool]] = [(call.output, True)]
    while open_:
        node, is_last = open_.pop()
        constant, expr = array_of(node), node.expr
        if constant is not None and constant.size == 1:
            number *= float(constant.item())
        elif len(between) > MOST_STEPS:
            factors.append(node)
        elif is_product(expr) and (is_last or len(node.uses) == 1):
            between.append(node)
            open_ += [(operand, False) for operand in expr.args]
        elif is_quotient(expr) and _divisor(expr) and (is_last or len(node.uses) == 1):
            between.append(node)
            number /= _divisor(expr)
            open_.append((expr.args[0], False))
        else:
            factors.append(node)
    return Product(number, factors, between)


def _divisor(expr: CallFunction) -> float:
    """Returns the number that ``expr`` divides by; 0 if it is not one constant number."""
    constant = None if any(expr.kwargs.values()) else array_of(expr.args[1])
    return float(constant.item()) if constant is not None and constant.size == 1 else 0.0


def polynomial_of(node: Any, x: TensorNode, between: list[TensorNode]) -> np.ndarray | None:
    """Returns the coefficients of ``node`` by powers of x, at most the third; ``between`` gets its steps."""
    if node is x:
        return np.array([0.0, 1, 0, 0])
    constant, expr = array_of(node), node.expr
    if constant is not None:
        return np.array([constant.item(), 0, 0, 0], np.float64) if constant.size == 1 else None
    operands = _operands(expr)
    if operands is None or len(between) > MOST_STEPS:
        return None
    between.append(node)
    found = [polynomial_of(operand, x, between) for operand in operands]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    if is_sum(expr):
        return parts[0] + parts[1]
    if is_quotient(expr):
        first, second = parts
        return None if np.any(second[1:]) or not second[0] else first / second[0]
    made = np.ones(1)
    for part in parts:
        made = np.convolve(made, part)
    return None if np.any(made[DEGREE + 1 :]) else made[: DEGREE + 1]


def _operands(expr: Any) -> list[Any] | None:
    """Returns the terms of a sum or quotient, or the factors of a product or power."""
    if is_call(expr, "aten::pow"):
        power = array_of(expr.args[1])
        if power is None or power.size != 1 or power.item() not in range(1, DEGREE + 1):
            return None
        return [expr.args[0]] * int(power.item())
    if is_call(expr, "aten::square"):
        return [expr.args[0]] * 2
    is_plain = is_product(expr) or (
        (is_sum(expr) or is_quotient(expr)) and all(value in (1, None) for value in expr.kwargs.values())
    )
    return list(expr.args) if is_plain else None
