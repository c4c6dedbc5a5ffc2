"""Integers from -64 to 64 for weights, of which no kernel's 16-bit sums of two products overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tmconvert.ir import CallFunction, Constant, InternalGraph, QParams, TensorNode
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import MatrixProduct, Weights

LARGEST = 64  # 255 * (64 + 64) is the largest sum that 16 bits hold


class ReduceWeightRange:
    """Widens the scales of symmetric weights to seven bits, as ``reduce_range`` of other tools does."""

    name = "reduce_weight_range"

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for expr in graph.exprs():
            if not isinstance(expr, CallFunction):
                continue
            for weight in _factors(expr):
                grid = weight.qparams if isinstance(weight, TensorNode) else None
                if grid is not None and isinstance(weight.expr, Constant) and is_reducible(grid):
                    weight.qparams = reduced(grid)
                    changed = True
        return changed


def _factors(call: CallFunction) -> Sequence[Any]:
    """The operands of a call that may be the weights in sums of products."""
    product = trait_of(call, MatrixProduct)
    if product is not None:
        return call.inputs[product.first :]
    return call.args[1:2] if has_trait(call, Weights) else ()


def is_reducible(grid: QParams) -> bool:
    """Whether the integers are symmetric, of eight bits, and reach beyond seven."""
    is_byte = grid.quant_min >= -128 and grid.quant_max <= 127
    return is_byte and not any(grid.zero_point) and max(-grid.quant_min, grid.quant_max) > LARGEST


def reduced(grid: QParams) -> QParams:
    """The grid with the same largest number, which is 64 steps."""
    factor = grid.quant_max / LARGEST
    scale = tuple(each * factor for each in grid.scale)
    return replace(grid, scale=scale, quant_min=-LARGEST, quant_max=LARGEST)
