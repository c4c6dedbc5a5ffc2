"""Functions that fill a tensor with a value or a copy."""

from __future__ import annotations

import functools
from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.indexing.gather_scatter import like
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.creation import filled
from tmconvert.ir.symbolic.clamps import minimum

ATEN = Table()


@ATEN.add("copy")
def copy(g, input, src, non_blocking=False):
    return views.expand(g, like(g, input, src), list(g.type(input).shape))


@ATEN.add("fill")
def fill(g, input, value):
    type_ = g.type(input)
    return filled(g, list(type_.shape), value, type_.dtype)


ATEN.add("zero")(lambda g, input: fill(g, input, 0))


@ATEN.add("fill_diagonal")
def fill_diagonal(g, input, fill_value, wrap=False):
    """Fills the elements [i, i, ...]; ``wrap`` repeats a tall matrix's diagonal after a gap of one row."""
    shape = g.type(input).shape
    step, size = sum(_strides(shape)), g.type(input).size
    is_repeated = wrap and len(shape) == 2
    count = -(-size // step) if is_repeated else functools.reduce(minimum, shape)
    end = size if is_repeated else (count - 1) * step + 1
    row = views.view(g, input, [size])
    values = filled(g, [count], fill_value, g.type(input).dtype)
    return views.view(g, g.call("aten::slice_scatter", row, values, 0, 0, end, step), list(shape))


def _strides(shape: Any) -> list[Any]:
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return strides
