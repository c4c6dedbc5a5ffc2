"""Clip int8 weights to [-127, 127] where kernels might not take -128.

TFLite's specification requires it: kernels for processors of Arm without dot products sum two products in 16
bits, which overflows where both are (-128)**2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, QParams, TensorNode
from tmconvert.ir.fake_quant import quantize
from tmconvert.passes.patterns.matching import integer_weights
from tmconvert.passes.rewriting import RewritePass
from tmconvert.symbolics.registry import has_trait, op_has
from tmconvert.symbolics.traits import Average, KeepsQparams, Weights

_LOWEST = -128


class NarrowWeights(RewritePass[QParams]):
    """Clip int8 weights to [-127, 127].

    They stay as they are where the input never is -128, and where a channel has -128 once at most. The match
    are the quantization parameters of the weights.
    """

    name = "narrow_weights"

    def takes(self, function: str) -> bool:
        return op_has(function, Weights)

    def match(self, graph: InternalGraph, call: CallFunction) -> QParams | None:
        weight: Any = None if integer_weights(call) is None else call.args[1]
        qparams = weight.qparams if weight is not None and isinstance(weight.expr, Constant) else None
        return qparams if qparams is not None and qparams.quant_min == _LOWEST else None

    def check(self, graph: InternalGraph, call: CallFunction, match: QParams) -> str | None:
        x, weight = call.args[0], call.args[1]
        if _is_above(x.qparams):
            return f"its input `{x.name}` does not contain -128"
        if min(match.zero_point) < _LOWEST + 1:
            return "the zero point of a channel is -128, which would be out of range"
        weights = integer_weights(call)
        assert weights is not None
        others = [axis for axis in range(len(weight.type.shape)) if axis != weights.output_axis]
        lowest = _is_lowest(np.asarray(weight.expr.value), match)
        most = 0 if _is_average(x) else 1  # which is one product with the average: integers/averages.py
        if not np.any(np.count_nonzero(lowest, axis=tuple(others)) > most):
            return "no channel has more than one weight of -128" if most else "no weight is -128"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: QParams) -> str:
        weight = call.args[1]
        weight.qparams = replace(match, quant_min=_LOWEST + 1)
        return f"has its weights `{weight.name}` clipped to [-127, 127]"


def clipped_weights(data: np.ndarray, qparams: QParams) -> int:
    """Counts weights that are -128 in the source, and -127 with the QParams of the pass."""
    if (qparams.dtype, qparams.quant_min) != ("int8", _LOWEST + 1):
        return 0
    return int(np.count_nonzero(_is_lowest(data, replace(qparams, quant_min=_LOWEST))))


def _is_lowest(data: np.ndarray, qparams: QParams) -> np.ndarray:
    """Returns which elements are -128; channels with a zero point are requantized."""
    columns = [1] * data.ndim
    if qparams.channel_axis is not None:
        columns[qparams.channel_axis] = -1
    return (quantize(data, qparams) <= _LOWEST) & (np.array(qparams.zero_point) == 0).reshape(columns)


def _is_above(qparams: QParams | None) -> bool:
    """Whether 8-bit QParams do not use -128: unsigned ones are shifted by 128."""
    if qparams is None:
        return False
    lowest = qparams.quant_min - 128 if qparams.quant_max > 127 else qparams.quant_min
    return lowest > _LOWEST


def _is_average(x: TensorNode) -> bool:
    """Whether ``x`` is an average without its own QParams, or a view of one."""
    while isinstance(x.expr, CallFunction) and (x.qparams is None or x.qparams.inferred):
        if has_trait(x.expr, Average):
            return True
        if not has_trait(x.expr, KeepsQparams):
            return False
        x = x.expr.args[0]
    return False
