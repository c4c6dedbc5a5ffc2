"""``x[start:stop] = value`` along an axis whose size is data-dependent.

Whether a slice covers the axis is known at run time only. All elements are computed, and those outside of the
slice are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.frontends.shared.arguments import reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim, same_size
from tmconvert.symbolics.idioms.formulas import Term

Cut = tuple[Any, Any, int]


def partial_axis(shape: Sequence[Any], cuts: Sequence[Cut], numbers: Sequence[Any]) -> int | None:
    """Returns the axis with a data-dependent size of which only a slice is written; None without one."""
    for axis, (extent, (start, stop, step)) in enumerate(zip(shape, cuts, strict=True)):
        if numbers[axis] is None and step == 1 and isinstance(extent, Dim) and data_symbols(extent):
            is_whole = same_size(start, 0) and same_size(stop, extent)
            if not is_whole and data_symbols((start, stop)):
                return axis
    return None


def with_slice(g: Emitter, part: Any, value: Any, axis: int, cut: Cut) -> Any:
    """Returns ``part`` with ``value`` in place of the slice ``cut`` of an axis.

    ``value`` has as many elements as the slice, or one, and broadcasts along the other axes.
    """
    type_, (start, stop, _) = g.type(part), cut
    shape = [*[1] * (type_.rank - g.type(value).rank), *g.type(value).shape]
    value, count = reshaped(g, value, shape), shape[axis]
    rows = Term(g, g.call("aten::arange", 0, type_.shape[axis])) - start
    inside = (rows >= 0) & (rows < stop - start)
    if not same_size(count, 1):
        beyond = [*shape[:axis], 1, *shape[axis + 1 :]]  # an element to select where the value has none
        zeros = g.call("aten::expand", g.constant(np.zeros([1] * type_.rank, type_.dtype)), beyond)
        value = g.call("aten::cat", [value, zeros], axis)
        value = g.call("aten::index_select", value, axis, rows.clamp(min=0, max=count).value)
    inside_rows = reshaped(g, inside.value, [type_.shape[axis], *[1] * (type_.rank - axis - 1)])
    return g.call("aten::where", inside_rows, value, part)
