"""Quantize weights to [-64, 64], where no 16-bit sum of two products overflows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tmconvert.ir import CallFunction, Constant, InternalGraph, QParams, TensorNode
from tmconvert.passes.rewriting import RewritePass
from tmconvert.symbolics.registry import has_trait, op_has, trait_of
from tmconvert.symbolics.traits import MatrixProduct, Weights

LARGEST = 64  # 255 * (64 + 64) is the largest sum that 16 bits hold


class ReduceWeightRange(RewritePass[list[TensorNode]]):
    """Widen the scales of symmetric int8 weights to seven bits, as ``reduce_range`` of other tools does.

    The match are the constant operands with quantization parameters.
    """

    name = "reduce_weight_range"

    def takes(self, function: str) -> bool:
        return op_has(function, MatrixProduct, Weights)

    def match(self, graph: InternalGraph, call: CallFunction) -> list[TensorNode] | None:
        return [
            node
            for node in dict.fromkeys(_factors(call))
            if isinstance(node, TensorNode) and node.qparams is not None and isinstance(node.expr, Constant)
        ] or None

    def check(self, graph: InternalGraph, call: CallFunction, match: list[TensorNode]) -> str | None:
        if any(is_reducible(node.qparams) for node in match if node.qparams is not None):
            return None
        return "its weights are not symmetric, or have seven bits already"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[TensorNode]) -> str:
        for node in match:
            if node.qparams is not None and is_reducible(node.qparams):
                node.qparams = reduced(node.qparams)
        return f"has weights in [-{LARGEST}, {LARGEST}] now"


def _factors(call: CallFunction) -> Sequence[Any]:
    """Returns the operands of a call that may be weights in sums of products."""
    product = trait_of(call, MatrixProduct)
    if product is not None:
        return call.inputs[product.first :]
    return call.args[1:2] if has_trait(call, Weights) else ()


def is_reducible(qparams: QParams) -> bool:
    """Whether the QParams are symmetric 8-bit ones whose range exceeds 7 bits."""
    is_byte = qparams.quant_min >= -128 and qparams.quant_max <= 127
    return is_byte and not any(qparams.zero_point) and max(-qparams.quant_min, qparams.quant_max) > LARGEST


def reduced(qparams: QParams) -> QParams:
    """Returns QParams with the same largest real value, at 64 steps."""
    factor = qparams.quant_max / LARGEST
    scale = tuple(each * factor for each in qparams.scale)
    return replace(qparams, scale=scale, quant_min=-LARGEST, quant_max=LARGEST)
