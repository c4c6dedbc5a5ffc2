"""Selects tensors that need int16 although int8 kernels exist: attention scores, inputs of norms."""

from __future__ import annotations

from tmconvert.calibration.placement import Kind
from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.normalizations import squared
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import (
    Arithmetic,
    ChoosesByCondition,
    Clamp,
    Distribution,
    KeepsQparams,
    MatrixProduct,
    NormalizesRows,
)

ROOT = "aten::sqrt"


def fine_results(graph: InternalGraph) -> dict[CallFunction, Kind]:
    """Returns the integer types of the results that need int16.

    - Scores of an attention, from the product of query and key to the softmax: an error of them is one of
      exponents. The weights that come out of it have a range of their own in int8.
    - Sums that are normalized: some rows of them are much smaller than others, which a norm undoes.
    - Squares and their sums under a root: those of small numbers are much smaller than of large ones.
    """
    found: dict[CallFunction, Kind] = {}
    for expr in graph:
        if not isinstance(expr, CallFunction):
            continue
        if has_trait(expr, Distribution) and (scores := _scores(expr.args[0])) is not None:
            found.update(dict.fromkeys(scores, "int16"))
            found[expr] = "narrow"
        elif _is_sum(expr) and _is_normalized(expr.output):
            found[expr] = "int16"
        elif expr.function == ROOT:
            found.update(dict.fromkeys(_squares(expr.args[0]), "int16"))
    return found


def _squares(node: TensorNode) -> list[CallFunction]:
    """Returns the calls of squares and of their sums that compute a tensor; none if there is no square."""
    found: dict[CallFunction, bool] = {}  # by call, whether it is a square
    waiting = [node]
    while waiting:
        each = waiting.pop()
        expr = each.expr
        if not isinstance(expr, CallFunction) or expr in found:
            continue
        if squared(each) is not None:
            found[expr] = True
        elif _is_sum(expr):
            found[expr] = False
            waiting += [operand for operand in expr.inputs if isinstance(operand, TensorNode)]
    return list(found) if any(found.values()) else []


def _scores(node: object) -> list[CallFunction] | None:
    """Returns the calls between a product of computed matrices and a tensor; None without such a product."""
    expr = node.expr if isinstance(node, TensorNode) else None
    if not isinstance(expr, CallFunction) or len(expr.outputs) != 1:
        return None
    if has_trait(expr, MatrixProduct):
        return [expr] if all(isinstance(each.expr, CallFunction) for each in expr.inputs) else None
    if not has_trait(expr, Arithmetic, ChoosesByCondition, Clamp, KeepsQparams):
        return None
    for operand in expr.inputs:
        found = _scores(operand)
        if found is not None:
            return found if has_trait(expr, KeepsQparams) else [*found, expr]
    return None


def _is_sum(expr: CallFunction) -> bool:
    arithmetic = trait_of(expr, Arithmetic)
    return arithmetic is not None and not arithmetic.is_product


def _is_normalized(node: object) -> bool:
    """Whether a normalization uses the tensor, or elements of it."""
    assert isinstance(node, TensorNode)
    return any(
        has_trait(user, NormalizesRows) or (has_trait(user, KeepsQparams) and _is_normalized(user.outputs[0]))
        for user in node.users
    )
