"""Fuse the steps of a GELU into one op."""

from __future__ import annotations

import math
from typing import NamedTuple

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import array_of, is_call, is_product, is_quotient, is_sum, kept_step
from tmconvert.passes.patterns.polynomials import Product, gated, is_near, polynomial_of, product_of
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Arithmetic

_SLOPE = math.sqrt(2 / math.pi)
# what is inside of the curve, by powers of x
_INSIDE_ERF, _INSIDE_TANH = (0, math.sqrt(0.5), 0, 0), (0, _SLOPE, 0, 0.044715 * _SLOPE)


class Steps(NamedTuple):
    """x * (curve + 1) / 2: the operand, the call of erf or tanh, and the tensors between x and the result."""

    x: TensorNode
    curve: CallFunction
    between: list[TensorNode]


class FuseGelu(Emits, RewritePass[Steps]):
    """Replace x * (erf(x / sqrt(2)) + 1) / 2, or its approximation by tanh, by ``aten::gelu``.

    Factors may be in any order, and the cubic polynomial inside of tanh may be written in any way.
    """

    name = "fuse_gelu"

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> Steps | None:
        for product, x, gate in gated(call):
            curve, number = _gate(gate)
            if curve is None or not is_near(product.number * number, 0.5, x):
                continue
            between = [*product.between, gate]
            inside = polynomial_of(curve.args[0], x, between)
            if inside is not None and is_near(inside, _INSIDE_TANH if _is_tanh(curve) else _INSIDE_ERF, x):
                between += [curve.output, *_tensors_between(gate, curve)]
                return Steps(x, curve, between)
        return None

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        if call.output.type != match.x.type:
            return "its shape is another than that of its operand"
        return kept_step(graph, call, match.between)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        approximate = "tanh" if _is_tanh(match.curve) else "none"
        made = self.emitter(call).call("aten::gelu", match.x, approximate)
        graph.substitute(call.output, made)
        return f"is a GELU of `{match.x.name}`"


def _gate(node: TensorNode) -> tuple[CallFunction | None, float]:
    """Returns the curve and the number of number * (curve + 1); no curve if ``node`` is something else."""
    expr = node.expr
    if not is_sum(expr) or any(value not in (1, None) for value in expr.kwargs.values()):
        return None, 0.0
    for constant, other in (expr.args, expr.args[::-1]):
        number = array_of(constant)
        if number is None or number.size != 1 or not isinstance(other, TensorNode):
            continue
        scaled = product_of(other.expr) if is_product(other.expr) or is_quotient(other.expr) else None
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
    return [node for each in scaled for node in (product_of(each.expr) or Product(1.0, [], [])).between]
