"""What Caffe's layers make of numbers: steps, rounding, products of computed matrices, maps along an axis.

Every blob is float32. What is compared or chosen goes through differences and products, so it is exact for
finite numbers, and NaN where NaN or two infinities meet: Caffe has no layer that chooses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..dialects import DIALECTS
from .caffe import cut, repeated, reshaped, sliced

if TYPE_CHECKING:
    from ...lower.builder import Builder
    from ...lower.target_graph import Value

# 1.5 * 2^23: a sum with it has no place for a fraction, and rounds as float32 does, halves to even
_WHOLE = 12582912.0
# chips that count in integers or float16, where that sum means nothing
_NARROW = ("nnie", "ascend")
MOST_PRODUCTS = 1 << 25
MOST_SLICES = 16


def step(g: Builder, x: Value) -> Value:
    """1 where ``x`` is above 0, else 0."""
    return g.op("Threshold", x, threshold=0.0)


def complement(g: Builder, flags: Value) -> Value:
    """1 - flags."""
    return g.op("Power", flags, scale=-1.0, shift=1.0)


def rounded(g: Builder, x: Value) -> Value:
    """The nearest whole number, halves to the even one: exact below 2^22, beyond it to 1 part in 2^22."""
    if DIALECTS[int(g.graph.version)] in _NARROW:
        g.refuse("no layer rounds, and the sum that would do it takes arithmetic in float32")
    for shift in (_WHOLE, -_WHOLE):  # each apart from the Power before: OpenCV would add their shifts
        x = g.op("Power", g.op("Split", x), shift=shift)
    return g.op("Split", x)


def floored(g: Builder, x: Value) -> Value:
    """The largest whole number not above ``x``: of the nearest one, 1 is taken away where it is above."""
    nearest = rounded(g, x)
    above = step(g, g.op("Eltwise", nearest, x, operation="SUM", coeff=[1.0, -1.0]))
    return g.op("Eltwise", nearest, above, operation="SUM", coeff=[1.0, -1.0])


def mapped_along(g: Builder, x: Value, axis: int, matrix: np.ndarray) -> Value:
    """``matrix`` [m, n] times the n elements along ``axis``: a 1x1 convolution with these as channels."""
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    made = g.op(
        "Convolution",
        reshaped(g, x, (outer, x.shape[axis], 1, inner)),
        g.const(np.ascontiguousarray(matrix, np.float32).reshape(*matrix.shape, 1, 1)),
        num_output=len(matrix),
        bias_term=False,
        kernel_h=1,
        kernel_w=1,
        shape=(outer, len(matrix), 1, inner),
    )
    return reshaped(g, made, (*x.shape[:axis], len(matrix), *x.shape[axis + 1 :]))


def flipped(g: Builder, x: Value, axis: int) -> Value:
    """``x`` from its end along ``axis``: slices in the other order, or a matrix where they would be many."""
    extent = x.shape[axis]
    if extent == 1:
        return x
    if extent > MOST_SLICES:
        return mapped_along(g, x, axis, np.eye(extent)[::-1])
    return g.op("Concat", *cut(g, x, axis, range(1, extent))[::-1], axis=axis, shape=x.shape)


def filled(g: Builder, constant: Value, like: Value) -> Value:
    """The ``constant`` as a computed blob: the bias of a product of zeros with an element of ``like``."""
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


def product(g: Builder, x: Value, other: Value) -> Value:
    """Computed matrices [b, m, k] times [b, k, n].

    Each row of ``x`` scales a copy of ``other``; a convolution with ones adds up along k.
    """
    (batch, rows, inner), columns = x.shape, other.shape[2]
    if batch * rows * inner * columns > MOST_PRODUCTS:
        g.refuse(
            "Caffe has no product of two computed matrices, and that of Scale layers would hold "
            f"{batch * rows * inner * columns} numbers at once"
        )
    copies = repeated(g, reshaped(g, other, (batch, 1, inner * columns)), 1, rows)
    copies = reshaped(g, copies, (batch * rows, inner, columns))
    scaled = g.op("Scale", copies, reshaped(g, x, (batch * rows, inner)), axis=0, shape=copies.shape)
    summed = mapped_along(g, scaled, 1, np.ones((1, inner), np.float32))
    return reshaped(g, summed, (batch, rows, columns))


def largest_at(g: Builder, x: Value, axis: int, count: int) -> Value:
    """Where the ``count`` largest elements along ``axis`` are, downwards; of equal ones the first.

    ArgMax puts the last of equal ones first, so it gets the elements from the end.
    """
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    places = g.op("ArgMax", flipped(g, x, axis), axis=axis, top_k=count, shape=shape)
    return g.op("Power", places, scale=-1.0, shift=float(x.shape[axis] - 1), shape=shape)


def largest(g: Builder, x: Value, axis: int, count: int) -> Value:
    """The ``count`` largest elements along ``axis``, downwards."""
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return g.op("ArgMax", x, axis=axis, top_k=count, out_max_val=True, shape=shape)


def rows_at(g: Builder, table: Value, places: Value) -> Value:
    """The rows of ``table`` [n, m] at the computed ``places`` [k]."""
    rows, columns = table.shape
    shape = (places.shape[0], columns)
    if table.is_constant:
        sizes = {"num_output": columns, "input_dim": rows}
        return g.op("Embed", places, table, bias_term=False, shape=shape, **sizes)
    return g.op("BatchReindex", table, places, shape=shape)


def shortened(g: Builder, x: Value) -> Value:
    """``x`` in the 11 digits of float16, in its range. Source: T. Dekker, 1971, splitting of numbers."""
    raised = g.op("Power", x, scale=8193.0)
    rest = g.op("Eltwise", raised, x, operation="SUM", coeff=[1.0, -1.0])
    return g.op("Eltwise", raised, rest, operation="SUM", coeff=[1.0, -1.0])
