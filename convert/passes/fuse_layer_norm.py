"""Fuse the steps of a layer normalization into one op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.matching import (
    array_of,
    is_call,
    is_difference,
    is_product,
    is_quotient,
    is_sum,
    kept_step,
)
from tmconvert.passes.rewriting import RewritePass, emitter_before
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Arithmetic

_MEAN = "aten::mean"


class Steps(NamedTuple):
    """(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + eps): the operand, the means, and the tensors between
    it and the result.
    """

    x: TensorNode
    means: list[CallFunction]
    eps: np.ndarray
    between: list[TensorNode]


class FuseLayerNorm(RewritePass[Steps]):
    """Replace the steps of a normalization over the last axes by ``aten::layer_norm``, with its weights.

    The division may be by the root, or a product with its reciprocal.
    """

    name = "fuse_layer_norm"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> Steps | None:
        for difference, root in _quotients(call):
            total: Any = root.expr.args[0].expr
            centred = _centred(difference)
            if centred is None or not is_sum(total) or any(total.kwargs.values()):
                continue
            for added, mean in (total.args, total.args[::-1]):
                eps = array_of(added)
                squared = _squared(mean.expr.args[0]) if is_call(mean.expr, _MEAN) else None
                again = None if squared is None else _centred(squared)
                if eps is None or squared is None or again is None or again[0] is not centred[0]:
                    continue
                means = [mean.expr, centred[1], again[1]]
                between = [difference, root, total.output, squared, mean.expr.args[0]]
                return Steps(centred[0], means, eps, [*between, *(each.output for each in means)])
        return None

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        rank = match.x.type.rank
        axes = _axes(match.means[0], rank)
        if any(_axes(each, rank) != axes or not each.kwargs["keepdim"] for each in match.means):
            return "its means are over other axes, or do not keep them"
        if axes != list(range(rank - len(axes), rank)):
            return "the normalized axes are not the last ones"
        if is_symbolic(match.x.type.shape[-len(axes) :]):
            return "the normalized axes are dynamic"
        if match.eps.size != 1:
            return "the term that is added to the mean is not one number"
        return kept_step(graph, call, match.between)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        shape = list(match.x.type.shape[-len(_axes(match.means[0], match.x.type.rank)) :])
        weight, last = _parameter(graph, call, shape, is_product)
        bias, last = _parameter(graph, last, shape, is_sum)
        g = emitter_before(last, self.catalogue, self.name)
        weight, bias = (
            each if each is None or list(each.type.shape) == shape else g.call("aten::reshape", each, shape)
            for each in (weight, bias)
        )
        made = g.call("aten::layer_norm", match.x, shape, weight, bias, float(match.eps.item()))
        graph.substitute(last.output, made)
        return f"is a layer normalization of `{match.x.name}`"


def _quotients(call: CallFunction) -> list[tuple[TensorNode, Any]]:
    """Returns what a call divides by a root, with the root or its reciprocal."""
    first, second = call.args
    if is_quotient(call) and not any(call.kwargs.values()) and is_call(second.expr, "aten::sqrt"):
        return [(first, second)]
    pairs = [(first, second), (second, first)] if is_product(call) else []
    return [(x, root) for x, root in pairs if is_call(root.expr, "aten::rsqrt")]


def _centred(node: TensorNode) -> tuple[TensorNode, CallFunction] | None:
    """Returns x and the call of the mean for x - mean(x)."""
    expr = node.expr
    if not is_difference(expr) or any(value not in (1, None) for value in expr.kwargs.values()):
        return None
    x, mean = expr.args
    return (x, mean.expr) if is_call(mean.expr, _MEAN) and mean.expr.args[0] is x else None


def _squared(node: TensorNode) -> TensorNode | None:
    """Returns the tensor whose square it is."""
    expr = node.expr
    if is_call(expr, "aten::square") or (is_product(expr) and expr.args[0] is expr.args[1]):
        return expr.args[0]
    if not is_call(expr, "aten::pow"):
        return None
    power = array_of(expr.args[1])
    return expr.args[0] if power is not None and power.size == 1 and power.item() == 2 else None


def _axes(mean: CallFunction, rank: int) -> list[int]:
    return sorted(axis % rank for axis in mean.kwargs["dim"] or range(rank))


def _parameter(
    graph: InternalGraph, call: CallFunction, shape: list[int], is_kind: Any
) -> tuple[TensorNode | None, CallFunction]:
    """Returns the constant of the normalized axes in the product or sum that alone uses ``call``, and that
    call; None and ``call`` itself without one.
    """
    result, users = call.output, list[Any](call.output.users)
    if len(users) != 1 or graph.use_count(result) != 1 or result.qparams is not None:
        return None, call
    (user,) = users
    if not is_kind(user):
        return None, call
    other = user.args[1] if user.args[0] is result else user.args[0]
    known = array_of(other)
    if known is None or any(value not in (1, None) for value in user.kwargs.values()):
        return None, call
    fits = known.size == np.prod(shape) and list(known.shape[-len(shape) :]) == shape
    return (other, user) if fits and user.output.type == result.type else (None, call)
