"""ONNX, opset 23: fuse the steps of an RMS normalization into one operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.matching import array_of, is_call, is_product, is_quotient, is_sum
from tmconvert.passes.rewriting import RewritePass, emitter_before
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Arithmetic


class Steps(NamedTuple):
    """x / sqrt(mean(x * x) + eps): the calls of the square, mean, sum and root."""

    square: CallFunction
    mean: CallFunction
    sum: CallFunction
    root: CallFunction
    eps: np.ndarray


class FuseRmsNorm(RewritePass[Steps]):
    """Replace x / sqrt(mean(x ** 2) + eps) by ``aten::rms_norm``, with the weights that multiply it."""

    name = "fuse_rms_norm"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue

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
            square = None if mean is None else _square(mean.args[0], call.args[0])
            if eps is not None and mean is not None and square is not None:
                return Steps(square, mean, total, root, eps)
        return None

    def check(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str | None:
        x = call.args[0]
        axes = _axes(match.mean, x.type.rank)
        if not match.mean.kwargs["keepdim"]:
            return "the mean does not keep the axes"
        if axes != list(range(x.type.rank - len(axes), x.type.rank)):
            return "the normalized axes are not the last ones"
        if is_symbolic(x.type.shape[-len(axes) :]):
            return "the normalized axes are dynamic"
        if match.eps.size != 1:
            return "the term that is added to the mean is not one number"
        steps = [match.square.output, match.mean.output, match.sum.output, match.root.output]
        shared = [step.name for step in steps if graph.use_count(step) != 1]
        if shared:
            return f"`{shared[0]}` has other users"
        kept = [node.name for node in (*steps, call.output) if node.qparams is not None]
        return f"`{kept[0]}` has quantization parameters of its own" if kept else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Steps) -> str:
        x = call.args[0]
        shape = list(x.type.shape[-len(_axes(match.mean, x.type.rank)) :])
        product, weight = _weight(graph, call, shape)
        last = product or call
        emitter = emitter_before(last, self.catalogue, self.name)
        if weight is not None and list(weight.type.shape) != shape:
            weight = emitter.call("aten::reshape", weight, shape)
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


def _square(node: Any, x: Any) -> CallFunction | None:
    """Returns the call that squares ``x``; None if ``node`` is something else."""
    expr = node.expr if isinstance(node, TensorNode) else None
    if is_call(expr, "aten::square") or is_product(expr):
        return expr if all(operand is x for operand in expr.args) else None
    if is_call(expr, "aten::pow") and expr.args[0] is x:
        power = array_of(expr.args[1])
        return expr if power is not None and power.size == 1 and power.item() == 2 else None
    return None


def _axes(mean: CallFunction, rank: int) -> list[int]:
    return sorted(axis % rank for axis in mean.kwargs["dim"] or range(rank))


def _weight(
    graph: InternalGraph, call: CallFunction, shape: list[int]
) -> tuple[CallFunction | None, TensorNode | None]:
    """Returns the product with constant weights of the normalized axes that alone uses ``call``, and the
    weights.
    """
    users = list(call.output.users) if graph.use_count(call.output) == 1 else []
    if len(users) != 1 or not is_product(users[0]):
        return None, None
    product = users[0]
    other = product.args[1] if product.args[0] is call.output else product.args[0]
    known = array_of(other)
    if known is None or product.output.type != call.output.type or known.dtype != call.output.type.dtype:
        return None, None
    is_weight = known.size == np.prod(shape) and list(known.shape[-len(shape) :]) == shape
    return (product, other) if is_weight else (None, None)
