"""Fuse the steps of a layer normalization into one op."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import (
    array_of,
    is_call,
    is_difference,
    is_product,
    is_quotient,
    is_sum,
    kept_step,
)
from tmconvert.passes.patterns.normalizations import (
    axes_of_mean,
    in_shape,
    parameter_after,
    squared,
    why_not_normalized,
)
from tmconvert.passes.rewriting import Emits, RewritePass
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


class FuseLayerNorm(Emits, RewritePass[Steps]):
    """Replace the steps of a normalization over the last axes by ``aten::layer_norm``, with its weights.

    The division may be by the root, or a product with its reciprocal.
    """

    name = "fuse_layer_norm"

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
                base = squared(mean.expr.args[0]) if is_call(mean.expr, _MEAN) else None
                again = None if base is None else _centred(base)
                if eps is None or base is None or again is None or again[0] is not centred[0]:
                    continue
                means = [mean.expr, centred[1], again[1]]
                between = [difference, root, total.output, base, mean.expr.args[0]]
                return Steps(centred[0], means, eps, [*between, *(each.output for each in means)])
        return None

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        axes = axes_of_mean(match.means[0])
        if any(axes_of_mean(each) != axes or not each.kwargs["keepdim"] for each in match.means):
            return "its means are over other axes, or do not keep them"
        reason = why_not_normalized(match.x, axes, match.eps)
        return reason or kept_step(graph, call, match.between)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        shape = list(match.x.type.shape[-len(axes_of_mean(match.means[0])) :])
        weight, last = parameter_after(graph, call, shape, is_product)
        bias, last = parameter_after(graph, last, shape, is_sum)
        g = self.emitter(last)
        weight, bias = (in_shape(g, each, shape) for each in (weight, bias))
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
