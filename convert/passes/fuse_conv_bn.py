"""Folds a batch norm into the convolution or linear layer in front of it, in float64."""

from __future__ import annotations

import re

import numpy as np

from ..ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from ..symbolics.ops.batch_norm import affine

TRANSPOSED = ("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")
PRODUCERS = ("aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", *TRANSPOSED)


class FuseConvBn:
    name = "fuse_conv_bn"

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for expr in graph.exprs():
            if not isinstance(expr, CallFunction) or expr.function != "aten::batch_norm":
                continue
            reason = _refusal(graph, expr)
            if reason:
                _log(f"not fused: {expr.output.name}: {reason}")
                continue
            self._fuse(graph, expr)
            changed = True
        return changed

    def _fuse(self, graph: InternalGraph, norm: CallFunction) -> None:
        producer = norm.args[0].expr
        x, weight, bias = producer.args
        groups = producer.kwargs["groups"] if producer.function in TRANSPOSED else None
        new_weight, new_bias = _scaled(norm, _array(weight), _array(bias), groups)
        constants = [
            self._constant(graph, norm, new_weight, weight.expr.name),
            self._constant(graph, norm, new_bias, _bias_name(weight, bias)),
        ]
        old = norm.output
        name = graph.free_name(f"{old.name}_fused")
        node = TensorNode(name, old.shape, old.dtype, qparams=old.qparams)
        fused = CallFunction(
            producer.function,
            (x, *constants),
            dict(producer.kwargs),
            result=node,
            source=producer.source,
            made_by=self.name,
        )
        graph.insert(fused, before=norm)
        graph.replace_uses(old, node)
        graph.remove(norm)
        graph.remove(producer)
        graph.rename(node, old.name)

    def _constant(
        self, graph: InternalGraph, norm: CallFunction, value: np.ndarray, name: str | None
    ) -> TensorNode:
        base = re.sub(r"\W", "_", name or f"{norm.output.name}_const", flags=re.ASCII)
        node = TensorNode(graph.free_name(base), value.shape, value.dtype)
        graph.insert(Constant(value, name, result=node, source=norm.source, made_by=self.name), before=norm)
        return node


def _log(message: str) -> None:
    import logging

    logging.getLogger(__name__).debug(message)


def _scaled(
    norm: CallFunction, weight: np.ndarray | None, bias: np.ndarray | None, groups: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Weight and bias that do the work of the norm too.

    The channels of the result are the first axis of a weight [O, ...]; transposed convolutions have
    ``groups`` and weights [C, O / groups, ...].
    """
    gamma, beta, mean, variance = (_array(node) for node in norm.args[1:])
    assert weight is not None and mean is not None and variance is not None
    with np.errstate(all="ignore"):  # a channel that overflows here did so before
        scale, shift = affine(gamma, beta, mean, variance, norm.kwargs["eps"])
        column = scale.reshape(-1, *[1] * (weight.ndim - 1))
        if groups is not None:
            column = scale.reshape(groups, -1, *[1] * (weight.ndim - 2))
            column = column.repeat(weight.shape[0] // groups, axis=0)
        new_bias = shift if bias is None else shift + scale * bias
        new_weight = np.empty_like(weight, subok=False)
        np.multiply(weight, column, out=new_weight, dtype=np.float64, casting="unsafe")  # in small pieces
        return new_weight, new_bias.astype(weight.dtype)


def _refusal(graph: InternalGraph, norm: CallFunction) -> str:
    """Why this batch norm stays, or nothing."""
    producer = norm.args[0].expr
    if not isinstance(producer, CallFunction) or producer.function not in PRODUCERS:
        return "it does not follow a convolution or linear layer"
    if producer.function == "aten::linear" and len(norm.args[0].type.shape) != 2:
        return "its channels are not the features of the linear layer"
    if any(isinstance(node, TensorNode) and node.qparams for node in (norm.args[0], *producer.args[1:])):
        return "it was quantized by itself"  # the scales of its weight would be wrong for the product
    if graph.use_count(norm.args[0]) != 1:
        return f"{producer.output.name} has other users"
    if any(_array(node) is None for node in (*producer.args[1:], *norm.args[1:]) if node is not None):
        return "its parameters are computed"
    return ""


def _array(node: Node | None) -> np.ndarray | None:
    if node is None or not isinstance(node.expr, Constant):
        return None
    return node.expr.value


def _bias_name(weight: Node, bias: Node | None) -> str | None:
    if bias is not None and isinstance(bias.expr, Constant):
        return bias.expr.name
    name = weight.expr.name if isinstance(weight.expr, Constant) else None
    return f"{name.removesuffix('weight')}bias" if name else None
