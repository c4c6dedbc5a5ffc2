"""Remove calls that change nothing."""

from __future__ import annotations

import numpy as np

from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode
from tmconvert.ir.subgraphs import subgraphs_of
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.rewriting import PassRecord, RewritePass, emitter_before
from tmconvert.symbolics.registry import catalogue, has_trait, op_has, trait_of
from tmconvert.symbolics.traits import (
    Arithmetic,
    Identity,
    MatrixProduct,
    NormalizesRows,
    SeesSignOfZero,
    Weights,
)

_SMALL = 1 << 16  # elements of a constant that is looked at
_SUMS = (Weights, MatrixProduct, NormalizesRows)


class DropIdentities(RewritePass[TensorNode]):
    """Remove calls that change nothing: x * 1, x / 1, x + 0, x - 0, full slices, padding by zero.

    Also pooling with windows of one element, and views that move nothing. The match is the operand that the
    call returns. Where it matters that x + 0.0 is 0.0 for -0.0, which runtimes forget, it is a choice.
    """

    name = "drop_identities"

    def __init__(self) -> None:
        self._seen: dict[TensorNode, str] = {}

    def run(self, graph: InternalGraph) -> PassRecord:
        self._seen = {}
        record = super().run(graph)
        self._seen = {}
        return record

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
        if _makes_zeros_positive(call) and (seen := _seen_by(call.output, self._seen)):
            g = emitter_before(call, catalogue(), self.name)
            zero = g.constant(np.zeros([1] * match.type.rank, match.type.dtype))
            graph.substitute(call.output, g.call("aten::where", g.call("aten::eq", match, zero), zero, match))
            return f"makes -0.0 to 0.0, which `{seen}` tells apart, in a form that no runtime removes"
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


def _makes_zeros_positive(call: CallFunction) -> bool:
    """Whether a constant is added, or subtracted, that makes -0.0 to 0.0."""
    arithmetic = trait_of(call, Arithmetic)
    if arithmetic is None or arithmetic.is_product or call.output.type.dtype.kind in "biu":
        return False
    (zeros,) = [node.expr.value for node in call.args if isinstance(node.expr, Constant)][-1:]
    signs = np.signbit(zeros)
    return not (signs.all() if not arithmetic.is_inverse else not signs.any())


def _seen_by(node: TensorNode, known: dict[TensorNode, str]) -> str:
    """Returns the name of a result that depends on the sign of a zero in ``node``; empty for none.

    ``known`` has what was found before, so that a chain of sums is followed once.
    """
    waiting = [node]
    while waiting:
        value = waiting[-1]
        name, following = _seen_next(value)
        if not name:
            name = next((known[each] for each in following if known.get(each)), "")
        following = [] if name else [each for each in following if each not in known]
        if following:
            waiting += following
        else:
            known[value] = name
            waiting.pop()
    return known[node]


def _seen_next(value: TensorNode) -> tuple[str, list[TensorNode]]:
    """Returns the name of a result that depends on the sign of ``value`` itself, and results that keep it."""
    following: list[TensorNode] = []
    for user in value.users:
        if _tells_apart(user, value) or any(subgraphs_of(user)):
            return user.outputs[0].name, []
        if not _forgets_sign(user):
            tensors = (each for each in user.outputs if isinstance(each, TensorNode))
            following += [each for each in tensors if each.type.dtype.kind not in "biu"]
    return "", following


def _tells_apart(user: Expr, value: TensorNode) -> bool:
    """Whether results of a call differ by more than the sign of a zero where ``value`` is -0.0 or 0.0."""
    seeing = trait_of(user, SeesSignOfZero)
    if seeing is None or not any(user.args[place] is value for place in seeing.operands):
        return False
    exponents = _exponents(user)
    return exponents is None or bool(((exponents < 0) & (exponents % 2 == 1)).any())


def _forgets_sign(user: Expr) -> bool:
    """Whether the sign of one zero does not change the results of a call."""
    if has_trait(user, *_SUMS):
        return True
    exponents = _exponents(user)
    if exponents is not None:
        return not (exponents % 2 == 1).any()
    arithmetic = trait_of(user, Arithmetic)
    if arithmetic is None or arithmetic.is_product:
        return False
    constants = [each.expr.value for each in user.args if isinstance(getattr(each, "expr", None), Constant)]
    return bool(constants) and bool(np.all(constants[0]))


def _exponents(user: Expr) -> np.ndarray | None:
    """Returns the exponents of a power by a constant; None for other calls."""
    seeing = trait_of(user, SeesSignOfZero)
    node = None if seeing is None or seeing.exponent is None else user.args[seeing.exponent]
    return node.expr.value if isinstance(node, TensorNode) and isinstance(node.expr, Constant) else None


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
