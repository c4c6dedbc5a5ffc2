"""Scatter in TFLite's operators: elements as rows, indexed by int32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.symbolic.dims import Dim
from tmconvert.symbolics.idioms import tflite

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import Value
    from tmconvert.targets.tflite.builder import TfliteBuilder

INT32 = np.dtype(np.int32)
# reduction: what joins the elements for one place, and these to the one that is there
_FOLDS = {
    "prod": ("UNSORTED_SEGMENT_PROD", "MUL"),
    "amax": ("UNSORTED_SEGMENT_MAX", "MAXIMUM"),
    "amin": ("UNSORTED_SEGMENT_MIN", "MINIMUM"),
}


def counted(g: TfliteBuilder, index: Value, extent: Any) -> Value:
    """Returns non-negative int32 indices."""
    if index.data is not None and (index.data >= 0).all():
        return g.ints(index.data)
    if index.data is not None and not isinstance(extent, Dim):
        return g.ints(index.data % max(extent, 1))
    return tflite.wrapped(g, g.cast(index, INT32), extent)


def in_a_row(g: TfliteBuilder, shape: Sequence[int], axis: int, index: Value) -> Value:
    """Returns int32 [indices]: the flat index of each along ``axis`` in a tensor of ``shape``."""
    total: Value | None = None
    for i, extent in enumerate(index.shape):
        column = [1] * len(shape)
        column[i] = extent
        stride = math.prod(shape[i + 1 :])
        place = counted(g, index, shape[i]) if i == axis else tflite.numbers(g, extent)
        place = place if i == axis else tflite.reshaped(g, place, column)
        if extent == 1 and i != axis:
            continue
        place = place if stride == 1 else _joined(g, "MUL", place, g.ints(stride))
        total = place if total is None else _joined(g, "ADD", total, place)
    assert total is not None
    return tflite.reshaped(g, total, (math.prod(index.shape),))


def _joined(g: TfliteBuilder, operator: str, x: Value, other: Value) -> Value:
    """Adds or multiplies indices; constants stay constant."""
    if x.data is None or other.data is None:
        return g.op(operator, x, other)
    return g.ints(x.data + other.data if operator == "ADD" else x.data * other.data)


def folded(g: TfliteBuilder, reduce: str, x: Value, axis: int, index: Value, src: Value) -> Value:
    """Reduces ``x`` and all elements of ``src`` at an index: "sum" or one of ``_FOLDS``."""
    if 0 in (*x.shape, *index.shape):
        return x
    size, count = math.prod(x.shape), math.prod(index.shape)
    places, parts = in_a_row(g, x.shape, axis, index), tflite.reshaped(g, src, (count,))
    if reduce == "sum":
        places = tflite.reshaped(g, places, (count, 1))
        total = g.op("SCATTER_ND", places, parts, g.ints([size]), shape=(size,), dtype=x.dtype)
        return g.op("ADD", x, tflite.reshaped(g, total, x.shape))
    operator, join = _FOLDS[reduce]
    if x.dtype.kind != "f" and x.dtype.itemsize < INT32.itemsize:  # what no element is for is of int32
        wide = folded(g, reduce, g.cast(x, INT32), axis, index, g.cast(src, INT32))
        return g.cast(wide, x.dtype)
    total = tflite.reshaped(g, g.op(operator, parts, places, g.ints(size), shape=(size,)), x.shape)
    result = g.op(join, x, total)
    if reduce == "prod" or x.dtype.kind != "f":
        return result
    # the most that an empty segment has is finite, and no less than an infinity of x
    lowest = np.finfo(x.dtype).min if reduce == "amax" else np.finfo(x.dtype).max
    empty = g.op("EQUAL", total, g.const(np.array(lowest, x.dtype)), dtype=bool)
    return g.op("SELECT_V2", empty, x, result, dtype=x.dtype)


def copied(g: TfliteBuilder, x: Value, axis: int, index: Value, source: Value) -> Value:
    """Writes ``source`` at ``index`` along ``axis`` of ``x``; for duplicates the last one wins."""
    extent, (count,) = x.shape[axis], index.shape
    if 0 in (extent, count):
        return x
    places = counted(g, index, extent)
    if places.data is not None and not isinstance(extent, Dim):
        choice = np.arange(extent)
        choice[places.data] = extent + np.arange(count)
        chosen = g.ints(choice)
    else:
        # the number of the last part for each place, far below zero where there is none
        last = g.op("UNSORTED_SEGMENT_MAX", tflite.numbers(g, count), places, g.ints(extent), shape=(extent,))
        chosen = g.op("MAXIMUM", g.op("ADD", last, g.ints(extent)), tflite.numbers(g, extent))
    both = (*x.shape[:axis], extent + count, *x.shape[axis + 1 :])
    both = g.op("CONCATENATION", x, source, axis=axis, shape=both)
    return g.op("GATHER", both, chosen, axis=axis, shape=x.shape)
