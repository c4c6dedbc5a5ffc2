"""Fold batch norms into the convolutions or linear layers before them, in float64.

Between the two may be sums and products with a number for each channel: PyTorch trains quantized models with
the norm already in the rounded weight, takes it out of the product again, and then applies it. Such a weight
stays as it is, and only the bias is new.
"""

from __future__ import annotations

import re

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from tmconvert.ir.lazy_constants import Array, scaled
from tmconvert.passes.rewriting import RewritePass
from tmconvert.symbolics.ops.layers.batch_norm import affine
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Arithmetic, Weights


class FuseConvBn(RewritePass[list[CallFunction]]):
    """Fuse a batch norm into the convolution or linear layer before it.

    The match is the list of calls from that layer to the norm.
    """

    name = "fuse_conv_bn"

    def takes(self, function: str) -> bool:
        return function == "aten::batch_norm"

    def match(self, graph: InternalGraph, call: CallFunction) -> list[CallFunction] | None:
        return _chain(call)

    def check(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str | None:
        return _refusal(graph, call, match)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str:
        self._fuse(graph, call, match)
        return f"was fused into `{match[0].output.name}`"

    def _fuse(self, graph: InternalGraph, norm: CallFunction, chain: list[CallFunction]) -> None:
        producer, *steps = chain
        x, weight, bias = producer.args
        scale, shift = _composed(steps)
        new_bias = shift if bias is None else shift + scale * _array(bias)
        new_bias = new_bias.astype(weight.dtype)
        new_weight = weight
        if weight.qparams is None:
            groups = producer.kwargs["groups"] if _weights(producer).is_transposed else None
            data = _scaled(weight.expr.stored, scale, groups)
            new_weight = self._constant(graph, norm, data, weight.expr.name)
        constants = [new_weight, self._constant(graph, norm, new_bias, _bias_name(weight, bias))]
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
        for expr in reversed([producer, *steps]):
            graph.remove(expr)
        graph.rename(node, old.name)

    def _constant(
        self, graph: InternalGraph, norm: CallFunction, value: Array, name: str | None
    ) -> TensorNode:
        base = re.sub(r"\W", "_", name or f"{norm.output.name}_const", flags=re.ASCII)
        node = TensorNode(graph.free_name(base), value.shape, value.dtype)
        graph.insert(Constant(value, name, result=node, source=norm.source, made_by=self.name), before=norm)
        return node


def _scaled(weight: Array, scale: np.ndarray, groups: int | None) -> Array:
    """Returns the weight multiplied by a scale per channel.

    The channels of the result are the first axis of a weight [O, ...]; transposed convolutions have
    ``groups`` and weights [C, O / groups, ...].
    """
    column = scale.reshape(-1, *[1] * (weight.ndim - 1))
    if groups is not None:
        column = scale.reshape(groups, -1, *[1] * (weight.ndim - 2))
        column = column.repeat(weight.shape[0] // groups, axis=0)
    return scaled(weight, column)


# ---- what is between


def _chain(norm: CallFunction) -> list[CallFunction]:
    """Returns the calls from the convolution to the norm; empty where another op is between them."""
    chain = [norm]
    while True:
        before = chain[0].args[0].expr
        if not isinstance(before, CallFunction):
            return []
        chain.insert(0, before)
        if has_trait(before, Weights):
            return chain
        if not has_trait(before, Arithmetic) or _by_channel(before) is None:
            return []


def _weights(producer: CallFunction) -> Weights:
    found = trait_of(producer, Weights)
    assert found is not None
    return found


def _composed(steps: list[CallFunction]) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift of each channel, of steps up to a norm."""
    *between, norm = steps
    gamma, beta, mean, variance = (_array(node) for node in norm.args[1:])
    assert mean is not None and variance is not None
    with np.errstate(all="ignore"):
        scale, shift = affine(gamma, beta, mean, variance, norm.kwargs["eps"])
        for step in reversed(between):
            number, arithmetic = _by_channel(step), trait_of(step, Arithmetic)
            assert number is not None and arithmetic is not None
            if arithmetic.is_product:
                scale = scale / number if arithmetic.is_inverse else scale * number
            else:
                shift = shift + scale * (-number if arithmetic.is_inverse else number)
    return scale, shift


def _by_channel(step: CallFunction) -> np.ndarray | None:
    """Returns the second operand of a step, a per-channel constant, in float64."""
    array, rank = _array(step.args[1]), len(step.output.type.shape)
    if array is None or array.ndim > rank or step.args[0].type != step.output.type:
        return None
    shape = [1] * (rank - array.ndim) + list(array.shape)
    if array.size not in (1, shape[1]):
        return None
    return array.reshape(-1).astype(np.float64)


def _refusal(graph: InternalGraph, norm: CallFunction, chain: list[CallFunction]) -> str | None:
    """Returns why this batch norm is not fused."""
    if not chain:
        return "no convolution or linear layer comes before it"
    producer, *steps = chain
    layer = f"`{producer.output.name}`"
    if not _weights(producer).spatial and norm.args[0].type.rank != 2:
        return f"its channels are not the features of the linear layer {layer}"
    between = [expr.output for expr in chain[:-1]]
    for node in between:
        if node.qparams:
            return f"`{node.name}` before it has quantization parameters of its own"
        if graph.use_count(node) != 1:
            is_input = node is norm.args[0]
            return "its input has other users" if is_input else f"`{node.name}` before it has other users"
    if any(_array(node) is None for node in norm.args[1:] if node is not None):
        return "its parameters are computed"
    if any(_array(node) is None for node in producer.args[1:] if node is not None):
        return f"the parameters of {layer} are computed"
    weight, *biases = (node for node in producer.args[1:] if isinstance(node, TensorNode))
    if any(bias.qparams for bias in biases):
        return f"the bias of {layer} is quantized"
    if weight.qparams and not _cancels(steps):
        return f"the weight of {layer} is quantized, and its scales would not fit the product"
    return None


def _cancels(steps: list[CallFunction]) -> bool:
    """Whether all scales together are 1, but for rounding."""
    return np.allclose(_composed(steps)[0], 1, rtol=1e-6, atol=0)


def _array(node: Node | None) -> np.ndarray | None:
    if node is None or not isinstance(node.expr, Constant):
        return None
    return node.expr.value


def _bias_name(weight: Node, bias: Node | None) -> str | None:
    if bias is not None and isinstance(bias.expr, Constant):
        return bias.expr.name
    name = weight.expr.name if isinstance(weight.expr, Constant) else None
    return f"{name.removesuffix('weight')}bias" if name else None
