"""Grids for results that the source does not round, in int16, from the ranges of what they are computed of.

In eight bits such a result would be off by half a step of its own, where the source has none: between two
tensors of the source its steps are parts of the operand's, so that averages are exact, or as fine as the type
allows over all numbers that the operands can make. What only leaves the model is in eight bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.integer.kernels import FIXED, KERNELS, MOVING, TABLE, WEIGHTED, WITHIN

Ends = tuple[float, float]
_LARGEST = 32767
_SMALLEST = 1e-30  # range, of which a step is still a number in float32
_ENDLESS = 1e38  # numbers that stand for infinity, as what windows of maxima are padded with


def fine(grid: QParams, count: int = 1, *, is_positive: bool = False) -> QParams:
    """A grid in int16 that has all steps of the one in int8, or all from 0 on, in as many parts as fit.

    These are a multiple of ``count``, if as many fit, so that the mean of so many numbers is on the grid.
    Else they are even and no power of two: QUANTIZE, which rounds in two steps, brings these back right.
    """
    if grid.dtype == "int16":
        return grid
    low, high = (end - grid.zero_point[0] for end in (grid.quant_min, grid.quant_max))
    low = 0 if is_positive else low
    parts = _LARGEST // max(-low, high, 1)
    if 1 < count <= parts:
        parts -= parts % count
    elif parts > 4:
        parts -= parts % 2
        parts -= 2 * (parts & (parts - 1) == 0)
    scale = float(np.float32(grid.scale[0] / parts))
    return QParams("int16", (scale,), (0,), low * parts, high * parts, inferred=True)


def spanning(low: float, high: float, kind: str) -> QParams | None:
    """The finest grid over these numbers and 0; None where no grid of float32 has them."""
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


def ends_of(grid: QParams) -> Ends:
    """The smallest and the largest number on a grid."""
    zero, scale = grid.zero_point[0], grid.scale[0]
    return (grid.quant_min - zero) * scale, (grid.quant_max - zero) * scale


def leaving(graph: TargetGraph) -> set[int]:
    """The ids of results that only leave the model, as they are or with their elements moved."""
    found, used = {id(value) for value in graph.outputs}, set[int]()
    for operator in reversed(graph.operators):
        passes = operator.type in MOVING and all(
            id(value) in found and id(value) not in used for value in operator.outputs
        )
        for value in operator.inputs:
            if value is not None:
                (found if passes else used).add(id(value))
    return found - used


def unrounded(
    operator: Operator, grids: Mapping[int, QParams], kind: str, leaves: bool, positive: set[int]
) -> QParams | None:
    """The grid of the result of an operator with an integer kernel; None where its range is not known.

    ``kind`` is the type of activations, ``leaves`` says that the result only leaves the model; ``positive``
    are the ids of what is never below 0.
    """
    kernel = KERNELS[operator.type]
    if not leaves and "int16" in kernel.types:
        kind = "int16"
    numbers = [operator.inputs[i] for i in kernel.operands(len(operator.inputs))]
    operands = [value for value in numbers if value is not None]
    computed = [value for value in operands if not value.is_constant]
    if not computed or any(id(value) not in grids for value in computed):
        return None
    own = grids[id(computed[0])]
    if kernel.relation == "fixed":
        scale, zero = FIXED[kind][operator.type]
        ends = (-128, 127) if kind == "int8" else (-32768, 32767)
        return QParams(kind, (scale,), (zero,), *ends, inferred=True)
    if operator.type in WITHIN and kind == "int16":
        return fine(own, _count(operator), is_positive=id(computed[0]) in positive)
    if operator.type in WITHIN:
        return None if own.dtype == kind else spanning(*ends_of(own), kind)
    if kernel.relation == "weights":
        span = _of_products(operator, own)
    else:
        rule = _SPANS.get(operator.type)
        span = None if rule is None else rule(operator, [_ends(value, grids) for value in operands])
    if span is None:
        return None
    span = _activated(operator, span)
    if kind == "int16" and operator.type in _CHOOSING:
        # one that an operand is on with all its steps, if it has them all
        own_grids = (fine(grids[id(value)]) for value in computed)
        found = [grid for grid in own_grids if _holds(grid, span)]
        if found:
            return _over(*span, min(grid.scale[0] for grid in found))
    return spanning(*span, kind)


def _holds(grid: QParams, span: Ends) -> bool:
    return -grid.scale[0] * _LARGEST <= span[0] and span[1] <= grid.scale[0] * _LARGEST


def _ends(value: Value, grids: Mapping[int, QParams]) -> Ends:
    if not value.is_constant:
        return ends_of(grids[id(value)])
    data = value.data
    assert data is not None
    data = data[np.abs(data) < _ENDLESS]
    return (float(np.min(data)), float(np.max(data))) if data.size else (0.0, 0.0)


def _count(operator: Operator) -> int:
    """Of how many parts the results of an average are, or those between four pixels."""
    x, result = operator.inputs[0], operator.outputs[0]
    assert x is not None
    if operator.type == "MEAN":
        return math.prod(x.shape) // max(math.prod(result.shape), 1)
    if operator.type == "RESIZE_BILINEAR":
        return math.prod(2 * new // old for old, new in zip(x.shape[1:3], result.shape[1:3], strict=True))
    if operator.type != "AVERAGE_POOL_2D":
        return 1
    sides = []
    for axis, side in ((1, "h"), (2, "w")):
        size = operator.attributes["filter_height" if side == "h" else "filter_width"]
        step = operator.attributes[f"stride_{side}"]
        assert isinstance(size, int) and isinstance(step, int)
        sides.append(_window_counts(x.shape[axis], result.shape[axis], size, step))
    return math.lcm(*(rows * columns for rows in sides[0] for columns in sides[1]))


def _window_counts(extent: int, results: int, size: int, step: int) -> set[int]:
    """How many places of the input the windows along one axis have; padding is left out."""
    before = max((results - 1) * step + size - extent, 0) // 2
    starts = (number * step - before for number in range(results))
    return {min(start + size, extent) - max(start, 0) for start in starts}


def _ends_of_table(operator: Operator) -> Ends:
    table = operator.inputs[1]
    assert table is not None and table.data is not None
    return float(np.min(table.data)), float(np.max(table.data))


# ---- ranges of results


def _hull(operator: Operator, ends: Sequence[Ends]) -> Ends:
    return min(low for low, _ in ends), max(high for _, high in ends)


def _products(one: Ends, other: Ends) -> list[float]:
    return [a * b for a in one for b in other]


def _multiplied(operator: Operator, ends: Sequence[Ends]) -> Ends:
    products = _products(*ends)
    return min(products), max(products)


def _summed(operator: Operator, ends: Sequence[Ends]) -> Ends:
    x, result = operator.inputs[0], operator.outputs[0]
    assert x is not None
    count = math.prod(x.shape) // max(math.prod(result.shape), 1)
    return ends[0][0] * count, ends[0][1] * count


def _matmul(operator: Operator, ends: Sequence[Ends]) -> Ends:
    x = operator.inputs[0]
    assert x is not None
    count = x.shape[-2 if operator.attributes.get("adj_x") else -1]
    products = _products(*ends)
    return min(products) * count, max(products) * count


def _leaky(operator: Operator, ends: Sequence[Ends]) -> Ends:
    slope = operator.attributes.get("alpha", 1.0)
    assert isinstance(slope, float)
    corners = [end if end > 0 else end * slope for end in ends[0]]
    return min(corners), max(corners)


def _of_products(operator: Operator, x: QParams) -> Ends | None:
    """Of a layer whose weights are on a grid: the sum of all products at their largest."""
    place = WEIGHTED[operator.type]
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


_ACTIVATIONS = {"RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def _clamped(ends: Ends, low: float, high: float) -> Ends:
    first, last = (min(max(end, low), high) for end in ends)
    return first, last


def _activated(operator: Operator, ends: Ends) -> Ends:
    limits = _ACTIVATIONS.get(str(operator.attributes.get("fused_activation_function", "NONE")))
    return ends if limits is None else _clamped(ends, *limits)


_CHOOSING = frozenset(
    {"CONCATENATION", "PACK", "SELECT_V2", "PADV2", "DYNAMIC_UPDATE_SLICE", "MAXIMUM", "MINIMUM"}
)
Span = Callable[[Operator, Sequence[Ends]], Ends]
_SPANS: dict[str, Span] = {
    **dict.fromkeys(_CHOOSING, _hull),
    "MAXIMUM": lambda operator, ends: (max(low for low, _ in ends), max(high for _, high in ends)),
    "MINIMUM": lambda operator, ends: (min(low for low, _ in ends), min(high for _, high in ends)),
    "ADD": lambda operator, ends: (ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]),
    "SUB": lambda operator, ends: (ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]),
    "MUL": _multiplied,
    "SUM": _summed,
    "BATCH_MATMUL": _matmul,
    "ABS": lambda operator, ends: (0.0, max(map(abs, ends[0]))),
    "LEAKY_RELU": _leaky,
    TABLE: lambda operator, ends: _ends_of_table(operator),
    "EXP": lambda operator, ends: (0.0, math.exp(min(ends[0][1], 700.0))),
}
