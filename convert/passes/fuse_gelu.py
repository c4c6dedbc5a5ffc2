"""Fuse the steps of a GELU into one op."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.matching import array_of, is_call, is_product, is_quotient, is_sum
from tmconvert.passes.rewriting import RewritePass, emitter_before
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Arithmetic

_SLOPE = math.sqrt(2 / math.pi)
# what is inside of the curve, by powers of x
_INSIDE_ERF, _INSIDE_TANH = (0, math.sqrt(0.5), 0, 0), (0, _SLOPE, 0, 0.044715 * _SLOPE)
_DEGREE = 3
_MOST_STEPS = 24  # of a GELU in any form; in longer chains the number of paths may double with each step


class Steps(NamedTuple):
    """x * (curve + 1) / 2: the operand, the call of erf or tanh, and the tensors between x and the result."""

    x: TensorNode
    curve: CallFunction
    between: list[TensorNode]


class _Product(NamedTuple):
    """A product of one number and tensors, and the tensors that are parts of it."""

    number: float
    factors: list[TensorNode]
    between: list[TensorNode]


class FuseGelu(RewritePass[Steps]):
    """Replace x * (erf(x / sqrt(2)) + 1) / 2, or its approximation by tanh, by ``aten::gelu``.

    Factors may be in any order, and the cubic polynomial inside of tanh may be written in any way.
    """

    name = "fuse_gelu"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> Steps | None:
        if not (is_product(call) or is_quotient(call)):
            return None
        product = _product(call)
        if product is None or len(product.factors) != 2:
            return None
        for x, gate in (product.factors, product.factors[::-1]):
            curve, number = _gate(gate)
            if curve is None or not _is_near(product.number * number, 0.5, x):
                continue
            between = [*product.between, gate]
            inside = _polynomial(curve.args[0], x, between)
            if inside is not None and _is_near(inside, _INSIDE_TANH if _is_tanh(curve) else _INSIDE_ERF, x):
                between += [curve.output, *_tensors_between(gate, curve)]
                return Steps(x, curve, between)
        return None

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        if call.output.type != match.x.type:
            return "its shape is another than that of its operand"
        steps = [node for node in dict.fromkeys(match.between) if node is not call.output]
        if any(node.qparams is not None for node in steps):
            return "its steps have quantization parameters of their own"
        inner = {call, *(node.expr for node in steps)}
        shared = [node for node in steps if graph.is_output(node) or not inner.issuperset(node.users)]
        return f"`{shared[0].name}` has other users" if shared else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        approximate = "tanh" if _is_tanh(match.curve) else "none"
        made = emitter_before(call, self.catalogue, self.name).call("aten::gelu", match.x, approximate)
        graph.substitute(call.output, made)
        return f"is a GELU of `{match.x.name}`"


def _is_near(found: Any, wanted: Any, x: TensorNode) -> bool:
    """Whether numbers are equal up to the rounding of the element type, and of half precision's constants."""
    eps = float(np.finfo(x.type.dtype).eps) if x.type.dtype.kind == "f" else 0.0
    return np.allclose(found, wanted, rtol=max(8 * eps, 1e-6), atol=1e-9)


def _product(call: CallFunction) -> _Product | None:
    """Returns what ``call`` multiplies, with products that it alone uses taken apart."""
    number, factors, between = 1.0, list[TensorNode](), list[TensorNode]()
    open_: list[tuple[Any, bool]] = [(call.output, True)]
    while open_:
        node, is_last = open_.pop()
        constant, expr = array_of(node), node.expr
        if constant is not None and constant.size == 1:
            number *= float(constant.item())
        elif len(between) > _MOST_STEPS:
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
    return _Product(number, factors, between)


def _divisor(expr: CallFunction) -> float:
    """Returns the number that ``expr`` divides by; 0 if it is not one constant number."""
    constant = None if any(expr.kwargs.values()) else array_of(expr.args[1])
    return float(constant.item()) if constant is not None and constant.size == 1 else 0.0


def _gate(node: TensorNode) -> tuple[CallFunction | None, float]:
    """Returns the curve and the number of number * (curve + 1); no curve if ``node`` is something else."""
    expr = node.expr
    if not is_sum(expr) or any(value not in (1, None) for value in expr.kwargs.values()):
        return None, 0.0
    for constant, other in (expr.args, expr.args[::-1]):
        number = array_of(constant)
        if number is None or number.size != 1 or not isinstance(other, TensorNode):
            continue
        scaled = _product(other.expr) if is_product(other.expr) or is_quotient(other.expr) else None
        factor, curves = (1.0, [other]) if scaled is None else (scaled.number, scaled.factors)
        if len(curves) == 1 and factor == float(number.item()):
            curve = curves[0].expr
            if isinstance(curve, CallFunction) and (is_call(curve, "aten::erf") or _is_tanh(curve)):
                return curve, factor
    return None, 0.0


def _is_tanh(expr: object) -> bool:
    return is_call(expr, "aten::tanh")


def _tensors_between(gate: TensorNode, curve: CallFunction) -> list[TensorNode]:
    """Returns the scaled curve, if there is one between the sum and the curve."""
    assert isinstance(gate.expr, CallFunction)
    scaled = [each for each in gate.expr.args if array_of(each) is None and each is not curve.output]
    return [node for each in scaled for node in (_product(each.expr) or _Product(1.0, [], [])).between]


def _polynomial(node: Any, x: TensorNode, between: list[TensorNode]) -> np.ndarray | None:
    """Returns the coefficients of ``node`` by powers of x, at most the third; ``between`` gets its steps."""
    if node is x:
        return np.array([0.0, 1, 0, 0])
    constant, expr = array_of(node), node.expr
    if constant is not None:
        return np.array([constant.item(), 0, 0, 0], np.float64) if constant.size == 1 else None
    operands = _operands(expr)
    if operands is None or len(between) > _MOST_STEPS:
        return None
    between.append(node)
    found = [_polynomial(operand, x, between) for operand in operands]
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
    return None if np.any(made[_DEGREE + 1 :]) else made[: _DEGREE + 1]


def _operands(expr: Any) -> list[Any] | None:
    """Returns the terms of a sum or quotient, or the factors of a product or power."""
    if is_call(expr, "aten::pow"):
        power = array_of(expr.args[1])
        if power is None or power.size != 1 or power.item() not in range(1, _DEGREE + 1):
            return None
        return [expr.args[0]] * int(power.item())
    if is_call(expr, "aten::square"):
        return [expr.args[0]] * 2
    is_plain = is_product(expr) or (
        (is_sum(expr) or is_quotient(expr)) and all(value in (1, None) for value in expr.kwargs.values())
    )
    return list(expr.args) if is_plain else None
