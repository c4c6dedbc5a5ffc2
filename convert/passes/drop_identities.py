"""Remove calls that change nothing."""

from __future__ import annotations

from typing import Any

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.rewriting import RewritePass
from tmconvert.symbolics.ops.view import KEPT

# The element that changes nothing, and at which operands.
NEUTRAL: dict[str, tuple[int, tuple[int, ...]]] = {
    "aten::mul": (1, (0, 1)),
    "aten::div": (1, (1,)),
    "aten::add": (0, (0, 1)),
    "aten::sub": (0, (1,)),
}
_SMALL = 1 << 16  # elements of a constant that is looked at


class DropIdentities(RewritePass[TensorNode]):
    """Remove calls that change nothing: x * 1, x / 1, x + 0, x - 0, full slices, padding by zero.

    Also pooling with windows of one element, and views that move nothing. The match is the operand that the
    call returns.
    """

    name = "drop_identities"

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
    neutral, places = NEUTRAL.get(expr.function, (0, ()))
    if any(expr.kwargs.values()):  # as a rounding mode
        return None
    for place in places:
        constant, x = expr.args[place], expr.args[1 - place]
        if x.type == expr.output.type and _is_all(constant, neutral):
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
    rule = IDENTITIES.get(expr.function)
    if rule is None or is_symbolic((expr.kwargs, expr.args[0].type.shape)):
        return False
    return expr.args[0].type == expr.output.type and rule(expr.kwargs)


def _is_one_element(attributes: dict[str, Any]) -> bool:
    names = ("kernel_size", "stride")
    is_single = all(size == 1 for name in names for size in attributes[name])
    return is_single and not any(attributes["padding"])


def _is_average(attributes: dict[str, Any]) -> bool:
    return _is_one_element(attributes) and attributes["divisor_override"] in (None, 1)


def _moves_nothing(attributes: dict[str, Any]) -> bool:
    factors = zip(attributes["split"], attributes["index"], strict=True)
    kept = [extent for extent, chosen in factors if chosen == KEPT]
    moved = [place for place in attributes["order"] if kept[place] != 1]
    return moved == sorted(moved)


# What holds of the attributes of an identity whose result has the type of its operand.
IDENTITIES = {
    "aten::pad": lambda attributes: not any(attributes["pad"]),
    "aten::slice": lambda attributes: True,
    "aten::avg_pool2d": _is_average,
    "aten::max_pool2d": _is_one_element,
    "tm::view": _moves_nothing,
}
