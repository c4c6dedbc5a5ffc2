"""Remove calls that change nothing."""

from __future__ import annotations

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.rewriting import RewritePass
from tmconvert.symbolics.registry import op_has, trait_of
from tmconvert.symbolics.traits import Arithmetic, Identity

_SMALL = 1 << 16  # elements of a constant that is looked at


class DropIdentities(RewritePass[TensorNode]):
    """Remove calls that change nothing: x * 1, x / 1, x + 0, x - 0, full slices, padding by zero.

    Also pooling with windows of one element, and views that move nothing. The match is the operand that the
    call returns.
    """

    name = "drop_identities"

    def takes(self, function: str) -> bool:
        return op_has(function, Identity, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> TensorNode | None:
        return _unchanged(call)

    def check(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str | None:
        if call.output.qparams is not None:
            return "it has quantization parameters of its own"
        if graph.is_output(call.output) and not _can_be_renamed(graph, match):
            return f"it is an output of the model, whose name `{match.name}` cannot have"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str:
        name, was = call.output.name, match.name
        if graph.is_output(call.output):
            graph.substitute(call.output, match)
            return f"was removed; `{was}`, which is equal, is called `{name}` now"
        graph.replace_uses(call.output, match)
        graph.remove(call)
        return f"was removed: it is equal to `{was}`"


def _unchanged(expr: CallFunction) -> TensorNode | None:
    """The operand that is the result of ``expr``, too; None where there is none."""
    if _is_identity(expr):
        x = expr.args[0]
        assert isinstance(x, TensorNode)
        return x
    arithmetic = trait_of(expr, Arithmetic)
    if arithmetic is None or any(expr.kwargs.values()):  # as a rounding mode
        return None
    for place in (1,) if arithmetic.is_inverse else (0, 1):
        constant, x = expr.args[place], expr.args[1 - place]
        if x.type == expr.output.type and _is_all(constant, arithmetic.neutral):
            return x
    return None


def _is_all(node: TensorNode, number: int) -> bool:
    if not isinstance(node.expr, Constant) or node.qparams is not None or node.type.size > _SMALL:
        return False
    return bool((node.expr.value == number).all())


def _can_be_renamed(graph: InternalGraph, x: TensorNode) -> bool:
    """Whether ``x`` may take the name of an output: it is computed, and no output itself."""
    return isinstance(x.expr, CallFunction) and not graph.is_output(x) and x.qparams is None


def _is_identity(expr: CallFunction) -> bool:
    if len(expr.outputs) != 1 or not expr.args or not isinstance(expr.args[0], TensorNode):
        return False
    identity = trait_of(expr, Identity)
    if identity is None or is_symbolic((expr.kwargs, expr.args[0].type.shape)):
        return False
    return expr.args[0].type == expr.output.type and identity.holds(**expr.kwargs)
