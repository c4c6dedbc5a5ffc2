"""Range inference: extremes of results from those of operands, integers as Python ints (no overflow)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.lowering.target_graph import Operator
from tmconvert.targets.tflite.operators.record import Range

MOST_ELEMENTS = (1 << 31) - 1  # of a tensor


def of_sum(operator: Operator, ranges: Sequence[Range]) -> Range:
    x, y = ranges
    return x[0] + y[0], x[1] + y[1]


def of_difference(operator: Operator, ranges: Sequence[Range]) -> Range:
    x, y = ranges
    return x[0] - y[1], x[1] - y[0]


def needed_by_sum(result: Range, ranges: Sequence[Range]) -> list[Range | None]:
    """Ranges of summands for a sum in ``result``: result - y and result - x."""
    (low, high), (x, y) = result, ranges
    return [(low - y[1], high - y[0]), (low - x[1], high - x[0])]


def needed_by_difference(result: Range, ranges: Sequence[Range]) -> list[Range | None]:
    """Range of the first operand: result + y."""
    (low, high), (_, y) = result, ranges
    return [(low + y[0], high + y[1]), None]


def of_product(operator: Operator, ranges: Sequence[Range]) -> Range:
    x, y = ranges
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def of_maximum(operator: Operator, ranges: Sequence[Range]) -> Range:
    return max(low for low, _ in ranges), max(high for _, high in ranges)


def of_minimum(operator: Operator, ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), min(high for _, high in ranges)


def of_negation(operator: Operator, ranges: Sequence[Range]) -> Range:
    ((low, high),) = ranges
    return -high, -low


def of_magnitude(operator: Operator, ranges: Sequence[Range]) -> Range:
    return 0, max(map(abs, ranges[0]))


def of_remainder(operator: Operator, ranges: Sequence[Range]) -> Range:
    """Range of integer FLOOR_MOD, whose results have the sign of the divisor."""
    low, high = ranges[1]
    return min(low + 1, 0), max(high - 1, 0)


def of_reduced_sum(operator: Operator, ranges: Sequence[Range]) -> Range:
    return _times(ranges[0], elements_per_result(operator))


def of_running_sum(operator: Operator, ranges: Sequence[Range]) -> Range:
    return _times(ranges[0], elements_of(operator))


def of_matrix_product(operator: Operator, ranges: Sequence[Range]) -> Range:
    x = operator.inputs[0]
    assert x is not None
    low, high = of_product(operator, ranges)
    count = x.shape[-2 if operator.attributes.get("adj_x") else -1]
    return low * count, high * count


def of_leaky_relu(operator: Operator, ranges: Sequence[Range]) -> Range:
    slope = operator.attributes.get("alpha", 1.0)
    assert isinstance(slope, float)
    corners = [end if end > 0 else end * slope for end in ranges[0]]
    return min(corners), max(corners)


def of_exponential(operator: Operator, ranges: Sequence[Range]) -> Range:
    return 0.0, math.exp(min(ranges[0][1], 700.0))


def of_table(operator: Operator, ranges: Sequence[Range]) -> Range:
    table = operator.inputs[1]
    assert table is not None and table.data is not None
    return float(np.min(table.data)), float(np.max(table.data))


def _times(one: Range, count: int) -> Range:
    """Range of a sum of at most ``count`` elements."""
    low, high = one
    return min(low, low * count, 0), max(high, high * count, 0)


# ---- numbers of elements


def elements_of(operator: Operator) -> int:
    """Returns the number of elements of the first input, or the maximum for dynamic shapes."""
    x = operator.inputs[0]
    assert x is not None
    return MOST_ELEMENTS if is_symbolic(x.shape) else math.prod(x.shape)


def elements_per_result(operator: Operator) -> int:
    """Returns the number of elements that a reduction combines, or the maximum for dynamic shapes."""
    result = operator.outputs[0]
    if is_symbolic(result.shape):
        return elements_of(operator)
    return elements_of(operator) // max(math.prod(result.shape), 1)


def pixels_between(operator: Operator) -> int:
    """Returns into how many parts a linear resize divides the distance of four pixels."""
    x, result = operator.inputs[0], operator.outputs[0]
    assert x is not None
    return math.prod(2 * new // old for old, new in zip(x.shape[1:3], result.shape[1:3], strict=True))


def window_elements(operator: Operator) -> int:
    """Returns the least common multiple of an average pool's window sizes."""
    x, result = operator.inputs[0], operator.outputs[0]
    assert x is not None
    sides = []
    for axis, side in ((1, "h"), (2, "w")):
        size = operator.attributes["filter_height" if side == "h" else "filter_width"]
        step = operator.attributes[f"stride_{side}"]
        assert isinstance(size, int) and isinstance(step, int)
        sides.append(_window_counts(x.shape[axis], result.shape[axis], size, step))
    return math.lcm(*(rows * columns for rows in sides[0] for columns in sides[1]))


def _window_counts(extent: int, results: int, size: int, step: int) -> set[int]:
    """Returns the numbers of elements of the windows along one axis, without padding."""
    before = max((results - 1) * step + size - extent, 0) // 2
    starts = (number * step - before for number in range(results))
    return {min(start + size, extent) - max(start, 0) for start in starts}
