"""Numeric idioms of Caffe layers: steps, rounding, computed matrix products, maps along an axis.

Every blob is float32, including integers and indices, which are exact below 2^24. Comparisons are Threshold
layers of differences; selections read elements by their index, and are exact, also for NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.symbolics.idioms.caffe import cut, mapped_along, repeated, reshaped, scaled, sliced, spread

if TYPE_CHECKING:
    from tmconvert.lowering.builder import Builder
    from tmconvert.lowering.target_graph import Value

# 1.5 * 2^23: a sum with it has no place for a fraction, and rounds as float32 does, halves to even
_WHOLE = 12582912.0
# devices that may count in integers or float16, where that sum means nothing
_NARROW = ("nnie", "ascend", "snpe", "trt")
MOST_PRODUCTS = 1 << 25
MOST_SLICES = 16
MOST_BITS = 22  # of integers that ``rounded`` leaves as they are
MOST_COUNTED = 1 << 24  # float32 has all integers up to here


def step(g: Builder, x: Value) -> Value:
    """1 where ``x`` > 0, else 0."""
    return above(g, x, 0.0)


def above(g: Any, x: Value, bound: float) -> Value:
    """1 where ``x`` > ``bound``, else 0, also for NaN, except without a Threshold, where NaN stays NaN."""
    if g.has("Threshold"):
        return g.op("Threshold", x, threshold=bound)
    # no Threshold: what is above 0, as large as can be, has a tangent near 1, and that made larger one of 1
    size = g.op("ReLU", g.op("Power", x, shift=-bound) if bound else x)
    for scale in (3e38, 1e3):
        size = g.op("TanH", g.op("Power", size, scale=scale))
    return size


def complement(g: Builder, flags: Value) -> Value:
    """1 - flags."""
    return g.op("Power", flags, scale=-1.0, shift=1.0)


def infinities(g: Builder, flags: Value, infinity: float) -> Value:
    """``infinity`` where the flag is 1, else 0: the inverse of 1 - flag, minus 1."""
    inverse = g.op("Power", flags, power=-1.0, scale=-1.0, shift=1.0)
    sign = math.copysign(1.0, infinity)
    return g.op("Power", inverse, scale=sign, shift=-sign)


def rounded(g: Builder, x: Value) -> Value:
    """Rounds to the nearest integer, halves to even: exact below 2^22, beyond it to 1 part in 2^22."""
    if DIALECTS[int(g.graph.version)] in _NARROW:
        g.refuse("no layer rounds, and the sum that emulates it requires float32 arithmetic")
    for shift in (_WHOLE, -_WHOLE):  # each apart from the Power before: OpenCV would add their shifts
        x = g.op("Power", g.op("Split", x), shift=shift)
    return g.op("Split", x)


def floored(g: Builder, x: Value) -> Value:
    """Computes floor(x): the nearest integer, minus 1 where that is greater than ``x``."""
    nearest = rounded(g, x)
    above = step(g, g.op("Eltwise", nearest, x, operation="SUM", coeff=[1.0, -1.0]))
    return g.op("Eltwise", nearest, above, operation="SUM", coeff=[1.0, -1.0])


def flipped(g: Builder, x: Value, axis: int) -> Value:
    """Reverses ``x`` along ``axis``."""
    return parts_at(g, x, axis, np.arange(x.shape[axis])[::-1])


def parts_at(g: Builder, x: Value, axis: int, index: np.ndarray) -> Value:
    """Selects the elements ``index`` along ``axis`` exactly: slices in that order.

    Where these would be many it is a matrix, which does not hide what is infinite elsewhere along the axis.
    """
    extent = x.shape[axis]
    places = index % extent
    ends = [*(np.flatnonzero(np.diff(places) != 1) + 1), len(places)]
    runs = [(int(places[start]), int(places[end - 1]) + 1) for start, end in pairwise([0, *ends])]
    points = sorted({bound for run in runs for bound in run} - {0, extent})
    if max(len(runs), len(points)) > MOST_SLICES:
        return mapped_along(g, x, axis, np.eye(extent, dtype=np.float32)[places])
    starts = [0, *points]
    pieces = dict(zip(starts, cut(g, x, axis, points), strict=True)) if points else {0: x}
    parts = [pieces[start] for run in runs for start in starts if run[0] <= start < run[1]]
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    return joined(g, parts, axis, shape)


def joined(g: Builder, parts: Sequence[Value], axis: int, shape: Sequence[int]) -> Value:
    """Concatenates computed blobs along ``axis``; OpenCV has two representations of a blob of one axis."""
    if len(parts) == 1:
        return parts[0]
    if len(shape) > 1:
        return g.op("Concat", *parts, axis=axis, shape=shape)
    rows = [reshaped(g, part, (1, *part.shape)) for part in parts]
    return reshaped(g, g.op("Concat", *rows, axis=1, shape=(1, *shape)), shape)


def filled(g: Builder, constant: Value, like: Value) -> Value:
    """Returns ``constant`` as a computed blob: the bias of a product of zeros with an element of ``like``."""
    assert constant.data is not None
    size = math.prod(constant.shape)
    element = sliced(g, reshaped(g, like, (1, math.prod(like.shape))), 1, 0, 1)
    made = g.op(
        "InnerProduct",
        element,
        g.const(np.zeros((size, 1), np.float32)),
        g.const(constant.data.reshape(-1)),
        num_output=size,
        shape=(1, size),
    )
    return reshaped(g, made, constant.shape)


def computed(g: Builder, x: Value, shape: Sequence[int]) -> Value:
    """Reshapes ``x``; a constant becomes the blob of a Parameter layer."""
    if x.data is None:
        return reshaped(g, x, shape)
    with np.errstate(over="ignore"):
        narrow = x.data.astype(np.float32)
    if np.any(np.isinf(narrow) & np.isfinite(x.data)):
        g.refuse("a constant exceeds the range of float32, in which Caffe computes")
    data = g.const(narrow.reshape(shape), name=x.name)
    dims: Any = {"shape.dim": list(shape)}
    return g.op("Parameter", data, shape=shape, **dims)


def chosen(g: Builder, flags: Value, x: Value, other: Value, shape: Sequence[int]) -> Value:
    """``x`` where the flag is 1, else ``other``, all broadcast to ``shape``; exact, also for NaN.

    Rows of one element, those of ``x`` above those of ``other``, are read by their numbers.
    """
    sizes, count = [math.prod(value.shape) for value in (x, other)], math.prod(shape)
    first, second = (
        np.broadcast_to(np.arange(size, dtype=np.float32).reshape(value.shape), shape).reshape(-1)
        for value, size in zip((x, other), sizes, strict=True)
    )
    second = second + np.float32(sizes[0])
    rows = [computed(g, value, (size, 1)) for value, size in zip((x, other), sizes, strict=True)]
    both = g.op("Concat", *rows, axis=0, shape=(sum(sizes), 1))
    flags = reshaped(g, spread(g, flags, shape), (1, count))
    numbers = scaled(g, flags, (first - second).reshape(1, -1), second.reshape(1, -1))
    made = g.op("BatchReindex", both, reshaped(g, numbers, (count,)), shape=(count, 1))
    return reshaped(g, made, shape)


def bits(g: Builder, x: Value, count: int) -> Value:
    """Returns the lowest ``count`` bits of integers [n], and whether these are negative: [n, count + 1].

    A negative number has the bits of its complement of two. Of each quotient by a power of 2 the odd ones.
    """
    column = repeated(g, reshaped(g, x, (x.shape[0], 1)), 1, count + 1)
    quotients = floored(g, scaled(g, column, np.float32(0.5) ** np.arange(count + 1)[None], None))
    halves = floored(g, g.op("Power", quotients, scale=0.5))
    return g.op("Eltwise", quotients, halves, operation="SUM", coeff=[1.0, -2.0])


def product(g: Builder, x: Value, other: Value) -> Value:
    """Multiplies computed matrices [b, m, k] by [b, k, n].

    Each row of ``x`` scales a copy of ``other``; a convolution with ones adds up along k.
    """
    (batch, rows, inner), columns = x.shape, other.shape[2]
    if batch * rows * inner * columns > MOST_PRODUCTS:
        g.refuse(
            "Caffe has no product of two computed matrices, and its emulation by Scale layers would "
            f"need {batch * rows * inner * columns} elements at once"
        )
    copies = repeated(g, reshaped(g, other, (batch, 1, inner * columns)), 1, rows)
    copies = reshaped(g, copies, (batch * rows, inner, columns))
    scaled = g.op("Scale", copies, reshaped(g, x, (batch * rows, inner)), axis=0, shape=copies.shape)
    summed = mapped_along(g, scaled, 1, np.ones((1, inner), np.float32))
    return reshaped(g, summed, (batch, rows, columns))


def largest_at(g: Builder, x: Value, axis: int, count: int) -> Value:
    """Returns the indices of the ``count`` largest elements along ``axis``, in descending order; ties in
    order of index.

    Caffe's ArgMax puts the last of equal elements first; it receives the elements in reverse order.
    """
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    places = g.op("ArgMax", flipped(g, x, axis), axis=axis, top_k=count, shape=shape)
    return g.op("Power", places, scale=-1.0, shift=float(x.shape[axis] - 1), shape=shape)


def largest(g: Builder, x: Value, axis: int, count: int) -> Value:
    """Returns the ``count`` largest elements along ``axis``, in descending order."""
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return g.op("ArgMax", x, axis=axis, top_k=count, out_max_val=True, shape=shape)


def rows_at(g: Builder, table: Value, places: Value) -> Value:
    """Gathers the rows of ``table`` [n, m] at computed indices [k]."""
    rows, columns = table.shape
    if rows > MOST_COUNTED:
        g.refuse(
            f"Caffe computes indices in float32, which is exact up to {MOST_COUNTED}, but there are {rows} "
            "rows"
        )
    shape = (places.shape[0], columns)
    if table.is_constant:
        sizes = {"num_output": columns, "input_dim": rows}
        return g.op("Embed", places, table, bias_term=False, shape=shape, **sizes)
    return g.op("BatchReindex", table, places, shape=shape)


def shortened(g: Builder, x: Value) -> Value:
    """Rounds ``x`` to the 11 significant bits of float16, within its range. Source: T. Dekker, 1971."""
    raised = g.op("Power", x, scale=8193.0)
    rest = g.op("Eltwise", raised, x, operation="SUM", coeff=[1.0, -1.0])
    return g.op("Eltwise", raised, rest, operation="SUM", coeff=[1.0, -1.0])
