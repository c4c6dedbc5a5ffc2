"""Fuse the reciprocal of a root into one op."""

from __future__ import annotations

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import array_of, is_call, is_quotient, is_sum
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Arithmetic

_RECIPROCAL = "aten::reciprocal"


class FuseRsqrt(Emits, RewritePass[CallFunction]):
    """Replace 1 / sqrt(x + eps), also where it is written as a reciprocal, by ``aten::rsqrt``.

    The match is the root. Runtimes have no reciprocal root of 0, so that the sum has to keep x from it.
    """

    name = "fuse_rsqrt"

    def takes(self, function: str) -> bool:
        return function == _RECIPROCAL or op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> CallFunction | None:
        root = _divisor(call)
        expr = None if root is None else root.expr
        return expr if is_call(expr, "aten::sqrt") else None

    def check(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str | None:
        root = match.output
        if graph.use_count(root) != 1 or root.qparams is not None:
            return f"`{root.name}` has other users or QParams"
        if call.output.type != root.type:
            return f"its shape is another than that of `{root.name}`"
        return None if is_above_zero(match.args[0]) else f"`{root.name}` may be 0"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: CallFunction) -> str:
        made = self.emitter(call).call("aten::rsqrt", match.args[0])
        graph.substitute(call.output, made)
        graph.remove(match)
        return f"is the reciprocal root of `{match.args[0].name}`"


def is_above_zero(node: TensorNode) -> bool:
    """Whether something was added to it that keeps it from 0."""
    expr = node.expr
    return is_sum(expr) and any(array is not None and (array > 0).all() for array in map(array_of, expr.args))


def _divisor(call: CallFunction) -> TensorNode | None:
    """Returns x of 1 / x."""
    if is_call(call, _RECIPROCAL):
        return call.args[0]
    if not is_quotient(call) or any(call.kwargs.values()):
        return None
    one = array_of(call.args[0])
    return call.args[1] if one is not None and one.size == 1 and one.item() == 1 else None
