"""Infers int16 QParams for unquantized intermediates by interval arithmetic.

In eight bits such a result would have an additional rounding error of half a step. In int16 its steps are
fractions of the operand's, so that averages are exact, or as small as the range of possible results allows.
Results that are only outputs of the model are int8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.record import Range

_LARGEST = 32767
_SMALLEST = 1e-30  # range, of which a step is still a number in float32
_ENDLESS = 1e38  # numbers that stand for infinity, as what windows of maxima are padded with


def subdivide(qparams: QParams, count: int = 1, *, is_positive: bool = False) -> QParams:
    """Returns int16 QParams that contain all steps of the int8 ones, subdivided as finely as possible.

    The number of parts is a multiple of ``count`` if possible, so that the mean of that many values is exact.
    Else it is even and not a power of two, for which QUANTIZE, which rounds in two steps, returns the exact
    value.
    """
    if qparams.dtype == "int16":
        return qparams
    low, high = (end - qparams.zero_point[0] for end in (qparams.quant_min, qparams.quant_max))
    low = 0 if is_positive else low
    parts = _LARGEST // max(-low, high, 1)
    if 1 < count <= parts:
        parts -= parts % count
    elif parts > 4:
        parts -= parts % 2
        parts -= 2 * (parts & (parts - 1) == 0)
    scale = float(np.float32(qparams.scale[0] / parts))
    return QParams("int16", (scale,), (0,), low * parts, high * parts, inferred=True)


def cover_range(low: float, high: float, kind: str) -> QParams | None:
    """Returns the finest QParams that cover these values and 0; None where float32 scales cannot."""
    low, high = min(low, 0.0), max(high, 0.0)
    if not _SMALLEST <= high - low < _ENDLESS:
        return None
    if kind == "int16":
        return _over(low, high, float(np.float32(max(-low, high) / _LARGEST)))
    scale = np.float32((high - low) / 255)
    zero = int(np.clip(round(-128 - low / scale), -128, 127))
    return QParams("int8", (float(scale),), (zero,), -128, 127, inferred=True)


def _over(low: float, high: float, scale: float) -> QParams:
    ends = (max(math.floor(low / scale), -_LARGEST), min(math.ceil(high / scale), _LARGEST))
    return QParams("int16", (scale,), (0,), *ends, inferred=True)


def ends_of(qparams: QParams) -> Range:
    """Returns the smallest and the largest real value of QParams."""
    zero, scale = qparams.zero_point[0], qparams.scale[0]
    return (qparams.quant_min - zero) * scale, (qparams.quant_max - zero) * scale


def output_only_values(graph: TargetGraph) -> set[Value]:
    """Returns the results that are only outputs of the model, possibly after views."""
    found, used = set(graph.outputs), set[Value]()
    for operator in reversed(graph.operators):
        passes = spec(operator.type).moves_one and all(
            value in found and value not in used for value in operator.outputs
        )
        for value in operator.inputs:
            if value is not None:
                (found if passes else used).add(value)
    return found - used


def infer_qparams(
    operator: Operator,
    all_qparams: Mapping[Value, QParams],
    kind: IntegerType,
    is_output: bool,
    positive: set[Value],
) -> QParams | None:
    """Returns inferred QParams of an integer operator's result; None where its range is not known.

    ``kind`` is the type of activations, ``is_output`` states that the result is only an output of the
    model;
    ``positive`` are values that are never negative.
    """
    known = spec(operator.type)
    kernel = known.integer
    assert kernel is not None
    if not is_output and "int16" in kernel.types:
        kind = "int16"
    numbers = [operator.inputs[i] for i in known.data_of(len(operator.inputs))]
    operands = [value for value in numbers if value is not None]
    computed = [value for value in operands if not value.is_constant]
    if not computed or any(value not in all_qparams for value in computed):
        return None
    own = all_qparams[computed[0]]
    if kernel.relation == "fixed":
        scale, zero = kernel.fixed[kind]
        ends = (-128, 127) if kind == "int8" else (-32768, 32767)
        return QParams(kind, (scale,), (zero,), *ends, inferred=True)
    if kernel.is_within and kind == "int16":
        parts = 1 if kernel.parts is None else kernel.parts(operator)
        return subdivide(own, parts, is_positive=computed[0] in positive)
    if kernel.is_within:
        return None if own.dtype == kind else cover_range(*ends_of(own), kind)
    if kernel.relation == "weights":
        span = _range_of_products(operator, own)
    else:
        span = known.range_of(operator, [_ends(value, all_qparams) for value in operands])
    if span is None:
        return None
    span = _clamp_by_activation(operator, span)
    if kind == "int16" and known.moves:
        # one that an operand is on with all its steps, if it has them all
        own_qparams = (subdivide(all_qparams[value]) for value in computed)
        found = [qparams for qparams in own_qparams if _holds(qparams, span)]
        if found:
            return _over(*span, min(qparams.scale[0] for qparams in found))
    return cover_range(*span, kind)


def _holds(qparams: QParams, span: Range) -> bool:
    return -qparams.scale[0] * _LARGEST <= span[0] and span[1] <= qparams.scale[0] * _LARGEST


def _ends(value: Value, all_qparams: Mapping[Value, QParams]) -> Range:
    if not value.is_constant:
        return ends_of(all_qparams[value])
    data = value.data
    assert data is not None
    data = data[np.abs(data) < _ENDLESS]
    return (float(np.min(data)), float(np.max(data))) if data.size else (0.0, 0.0)


def _range_of_products(operator: Operator, x: QParams) -> Range | None:
    """Range of a layer with quantized weights: the sum of all products at their largest."""
    place = spec(operator.type).weights
    assert place is not None
    weight = operator.inputs[place.weight]
    if weight is None or weight.data is None or weight.qparams is None:
        return None
    others = tuple(axis for axis in range(weight.data.ndim) if axis != place.axis)
    largest = np.sum(np.abs(weight.data), axis=others) * max(map(abs, ends_of(x)))
    bias = operator.inputs[place.bias] if place.bias < len(operator.inputs) else None
    if bias is not None and bias.data is not None:
        largest = largest + np.abs(bias.data.reshape(-1))
    most = float(np.max(largest, initial=0))
    return -most, most


def _clamp(ends: Range, low: float, high: float) -> Range:
    first, last = (min(max(end, low), high) for end in ends)
    return first, last


def _clamp_by_activation(operator: Operator, ends: Range) -> Range:
    limits = spec(str(operator.attributes.get("fused_activation_function"))).activation
    return ends if limits is None else _clamp(ends, *limits)
