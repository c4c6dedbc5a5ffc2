"""Fuse the steps of a hard swish into one op."""

from __future__ import annotations

from typing import Any, NamedTuple

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import is_call, kept_step
from tmconvert.passes.patterns.polynomials import gated, is_near, polynomial_of
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has, trait_of
from tmconvert.symbolics.traits import Arithmetic, Clamp

_LINE = (3, 1, 0, 0)  # inside of the clamp, by powers of x
_MOST = 6  # the upper bound of the clamp, which is divided by it


class Steps(NamedTuple):
    """x * clamp(x + 3, 0, 6) / 6: the operand, and the tensors between it and the result."""

    x: TensorNode
    between: list[TensorNode]


class FuseHardswish(Emits, RewritePass[Steps]):
    """Replace x * clamp(x + 3, 0, 6) / 6 by ``aten::hardswish``.

    Factors may be in any order, and at any scale: clamp(x / 6 + 1 / 2, 0, 1) is the same gate.
    """

    name = "fuse_hardswish"

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> Steps | None:
        for product, x, gate in gated(call):
            between = [*product.between, gate]
            if _is_gate(gate.expr, product.number, x, between):
                return Steps(x, between)
        return None

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        if call.output.type != match.x.type or match.x.type.dtype.kind != "f":
            return "its type is another than that of its operand"
        return kept_step(graph, call, match.between)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        made = self.emitter(call).call("aten::hardswish", match.x)
        graph.substitute(call.output, made)
        return f"is a hard swish of `{match.x.name}`"


def _is_gate(expr: Any, number: float, x: TensorNode, between: list[TensorNode]) -> bool:
    """Whether ``number`` times ``expr`` is clamp(x + 3, 0, 6) / 6; ``between`` gets the steps."""
    if is_call(expr, "aten::hardsigmoid"):
        return expr.args[0] is x and is_near(number, 1.0, x)
    clamp = trait_of(expr, Clamp)
    if clamp is None or len(expr.inputs) != 1:
        return False
    low, high = clamp.bounds(expr.kwargs)
    if low != 0 or high is None or not high > 0 or not is_near(number * high, 1.0, x):
        return False
    line = polynomial_of(expr.args[0], x, between)
    return line is not None and is_near(line * (_MOST / high), _LINE, x)
