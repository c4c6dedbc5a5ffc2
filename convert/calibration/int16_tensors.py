"""Where eight bits are too few: tensors that TFLite is to have in int16 though there are int8 kernels."""

from __future__ import annotations

from collections.abc import Iterator

from tmconvert.calibration.placement import Kind
from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.propagate_qparams import KEEPING

_MATRICES = frozenset({"aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum"})
_BETWEEN = frozenset(
    {"aten::add", "aten::sub", "aten::mul", "aten::div", "aten::where", "aten::masked_fill", "aten::clamp"}
)
_NORMS = frozenset({"aten::layer_norm", "aten::rms_norm"})


def fine_results(graph: InternalGraph) -> dict[CallFunction, Kind]:
    """What the results of such calls are to be in.

    - Scores of an attention, from the product of query and key to the softmax: an error of them is one of
      exponents. The weights that come out of it have a range of their own in int8.
    - Sums that are normalized: some rows of them are much smaller than others, which a norm undoes.
    """
    found: dict[CallFunction, Kind] = {}
    for expr in graph.exprs():
        if not isinstance(expr, CallFunction):
            continue
        if expr.function == "aten::softmax" and (scores := _scores(expr.args[0])) is not None:
            found |= dict.fromkeys(scores, "int16") | {expr: "narrow"}
        elif expr.function in ("aten::add", "aten::sub") and any(_users(expr.output, _NORMS)):
            found[expr] = "int16"
    return found


def _scores(node: object) -> list[CallFunction] | None:
    """The calls that lead from a product of computed matrices to a tensor; None where none is behind it."""
    expr = node.expr if isinstance(node, TensorNode) else None
    if not isinstance(expr, CallFunction) or len(expr.outputs) != 1:
        return None
    if expr.function in _MATRICES:
        return [expr] if all(isinstance(each.expr, CallFunction) for each in expr.inputs) else None
    if expr.function not in _BETWEEN and expr.function not in KEEPING:
        return None
    for operand in expr.inputs:
        found = _scores(operand)
        if found is not None:
            return found if expr.function in KEEPING else [*found, expr]
    return None


def _users(node: object, functions: frozenset[str]) -> Iterator[CallFunction]:
    """Calls of some functions that use a tensor, or what is picked and moved of it."""
    assert isinstance(node, TensorNode)
    for user in node.users:
        if isinstance(user, CallFunction) and user.function in functions:
            yield user
        elif isinstance(user, CallFunction) and user.function in KEEPING:
            yield from _users(user.outputs[0], functions)
