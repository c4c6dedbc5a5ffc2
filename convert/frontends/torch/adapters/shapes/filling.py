"""Functions that fill a tensor with a value or a copy."""

from __future__ import annotations

from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.indexing.gather_scatter import like
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.creation import filled

ATEN = Table()


@ATEN.add("copy")
def copy(g, input, src, non_blocking=False):
    return views.expand(g, like(g, input, src), list(g.type(input).shape))


@ATEN.add("fill")
def fill(g, input, value):
    type_ = g.type(input)
    return filled(g, list(type_.shape), value, type_.dtype)


@ATEN.add("zero")
def zero(g, input):
    return fill(g, input, 0)


@ATEN.add("fill_diagonal")
def fill_diagonal(g, input, fill_value, wrap=False):
    """Fills the elements [i, i, ...]; with ``wrap`` a tall matrix repeats the diagonal after a gap of one
    row.
    """
    shape = g.type(input).shape
    step = sum(_strides(shape))
    rows = min(shape) if not wrap or len(shape) > 2 else shape[0] if shape[0] > shape[1] else min(shape)
    end = rows * step if not wrap else g.type(input).size
    row = views.view(g, input, [g.type(input).size])
    end = end if end < g.type(input).size else g.type(input).size
    count = -(-end // step)
    values = filled(g, [count], fill_value, g.type(input).dtype)
    return views.view(g, g.call("aten::slice_scatter", row, values, 0, 0, end, step), list(shape))


def _strides(shape: Any) -> list[Any]:
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return strides
