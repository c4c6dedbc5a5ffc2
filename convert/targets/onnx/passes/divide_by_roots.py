"""ONNX: divide by a square root instead of multiplying by its reciprocal."""

from __future__ import annotations

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import is_call, is_product
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Arithmetic


class DivideByRoots(Emits, RewritePass[int]):
    """Replace x * (1 / sqrt(y)) by x / sqrt(y): ONNX has no operator for the reciprocal of a root.

    The match is the position of the factor that is the reciprocal.
    """

    name = "divide_by_roots"

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> int | None:
        if not is_product(call):
            return None
        return next((place for place in (1, 0) if _is_reciprocal_root(call.args[place])), None)

    def check(self, graph: InternalGraph, call: CallFunction, match: int) -> str | None:
        reciprocal = call.args[match]
        assert isinstance(reciprocal, TensorNode)
        if graph.use_count(reciprocal) != 1:
            return f"`{reciprocal.name}` has other users"
        if reciprocal.qparams is not None:
            return f"`{reciprocal.name}` has quantization parameters of its own"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: int) -> str:
        reciprocal, other, old = call.args[match].expr, call.args[1 - match], call.output
        root = reciprocal.args[0]
        made = self.emitter(call).call("aten::div", other, root)
        made.qparams = old.qparams
        graph.replace_uses(old, made)
        graph.remove(call)
        graph.remove(reciprocal)
        graph.rename(made, old.name)
        return f"divides by `{root.name}`"


def _is_reciprocal_root(node: object) -> bool:
    """Whether ``node`` is 1 / sqrt(y)."""
    expr = node.expr if isinstance(node, TensorNode) else None
    if not is_call(expr, "aten::reciprocal"):
        return False
    root = expr.args[0]
    return isinstance(root, TensorNode) and is_call(root.expr, "aten::sqrt")
