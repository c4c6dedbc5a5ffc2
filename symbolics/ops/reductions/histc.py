"""aten::histc: a histogram with bins of equal width."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer, number

Array = np.ndarray


def _result(x: TensorType, bins: int, min: float, max: float) -> TensorType:
    if bins < 1 or max < min:
        raise ValueError(
            f"histc requires positive bins and min <= max, got bins={bins}, min={min}, max={max}"
        )
    return TensorType(x.dtype, (bins,))


histc = Op(
    "aten::histc",
    args=[Tensor("x", FLOATS), integer("bins", 100), number("min", 0), number("max", 0)],
    result=_result,
)


@histc.reference
def histc_ref(x: Array, bins: int, min: float, max: float) -> Array:
    """[bins], typed as ``x``, the last with its end; equal bounds: the extremes. Source: torch.histc."""
    low, high = (x.min(), x.max()) if min == max and x.size else np.array([min, max], x.dtype)
    if low == high:
        low, high = low - x.dtype.type(1), high + x.dtype.type(1)
    inside = x[(x >= low) & (x <= high)]
    places = ((inside - low) * x.dtype.type(bins) / (high - low)).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(x.dtype)


@histc.decompose
def histc_scattered(g, x, bins, min, max):
    type_ = g.type(x)
    row = Term(g, g.call("aten::reshape", x, [type_.size]))
    low, high = _bounds(g, row, min, max)
    inside = (row >= low) & (row <= high)
    place = ((row - low) * bins / (high - low)).floor()
    place = (place >= bins).where(row.like(bins - 1), place)
    place = inside.where(place, row.like(0)).to("int64")  # NaN, too, is not inside
    zeros = g.constant(np.zeros(bins, type_.dtype))
    return g.call("aten::scatter_add", zeros, 0, place.value, inside.to(type_.dtype).value)


def _bounds(g: Any, row: Term, low: float, high: float) -> tuple[Term, Term]:
    if low < high:
        return row.like(low), row.like(high)
    if low != high or not row.type.size:
        return row.like(low - 1), row.like(high + 1)
    first, last = row.amin(), row.amax()
    apart = first.eq(last).to(row.dtype)
    return first - apart, last + apart
