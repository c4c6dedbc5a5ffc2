"""ONNX, opset 23: fuse the steps of an RMS normalization into one operator."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import array_of, is_call, is_product, is_quotient, is_sum
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


class Steps(NamedTuple):
    """x / sqrt(mean(x * x) + eps): the calls of the square, mean, sum and root."""

    square: CallFunction
    mean: CallFunction
    sum: CallFunction
    root: CallFunction
    eps: np.ndarray


class FuseRmsNorm(Emits, RewritePass[Steps]):
    """Replace x / sqrt(mean(x ** 2) + eps) by ``aten::rms_norm``, with the weights that multiply it."""

    name = "fuse_rms_norm"

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> Steps | None:
        if not is_quotient(call) or any(call.kwargs.values()):
            return None
        root = _call(call.args[1], "aten::sqrt")
        total = None if root is None else root.args[0].expr
        if root is None or not is_sum(total) or any(total.kwargs.values()):
            return None
        for place in (1, 0):
            eps, mean = array_of(total.args[place]), _call(total.args[1 - place], "aten::mean")
            if eps is not None and mean is not None and squared(mean.args[0]) is call.args[0]:
                return Steps(mean.args[0].expr, mean, total, root, eps)
        return None

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        x = call.args[0]
        if not match.mean.kwargs["keepdim"]:
            return "the mean does not keep the axes"
        reason = why_not_normalized(x, axes_of_mean(match.mean), match.eps)
        if reason:
            return reason
        steps = [match.square.output, match.mean.output, match.sum.output, match.root.output]
        shared = [step.name for step in steps if graph.use_count(step) != 1]
        if shared:
            return f"`{shared[0]}` has other users"
        kept = [node.name for node in (*steps, call.output) if node.qparams is not None]
        return f"`{kept[0]}` has quantization parameters of its own" if kept else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        x = call.args[0]
        shape = list(x.type.shape[-len(axes_of_mean(match.mean)) :])
        weight, last = parameter_after(graph, call, shape, is_product, constant=False)
        emitter = self.emitter(last)
        weight = in_shape(emitter, weight, shape)
        made = emitter.call("aten::rms_norm", x, shape, weight, float(match.eps.item()))
        old = last.output
        made.qparams = old.qparams
        graph.replace_uses(old, made)
        for each in dict.fromkeys((last, call, match.root, match.sum, match.mean, match.square)):
            graph.remove(each)
        graph.rename(made, old.name)
        return "is an RMS normalization"


def _call(node: Any, function: str) -> CallFunction | None:
    expr = node.expr if isinstance(node, TensorNode) else None
    return expr if is_call(expr, function) else None
