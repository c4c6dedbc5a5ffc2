"""aten::unfold: windows along one axis as a new last axis; they may overlap."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integer
from tmconvert.symbolics.results import normalized_axis, window_extent

Array = np.ndarray


def _result(x: TensorType, dimension: int, size: int, step: int) -> TensorType:
    axis = normalized_axis(dimension, x.rank)
    if step < 1 or size < 1:
        raise ValueError(f"the window size {size} and step {step} must be positive")
    count = window_extent(x.shape[axis], size, step, 0)
    return TensorType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :], size))


unfold = Op(
    "aten::unfold",
    args=[Tensor("x", ANY_DTYPE), integer("dimension"), integer("size"), integer("step")],
    result=_result,
)


@unfold.reference
def unfold_ref(x: Array, dimension: int, size: int, step: int) -> Array:
    """Source: torch.Tensor.unfold."""
    windows = np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, size, dimension), dimension % x.ndim, 0)
    return np.ascontiguousarray(np.moveaxis(windows[::step], 0, dimension % x.ndim))


@unfold.decompose
def unfold_selected(g, x, dimension, size, step):
    shape = list(g.type(x).shape)
    axis = normalized_axis(dimension, len(shape))
    count = window_extent(shape[axis], size, step, 0)
    if size != step:
        first = g.call("aten::reshape", numbers(g, 0, count * step, step), [count, 1])
        places = g.call("aten::add", first, numbers(g, 0, size))
        x = g.call("aten::index_select", x, axis, g.call("aten::reshape", places, [count * size]))
    elif count * size != shape[axis]:
        x = g.call("aten::slice", x, axis, 0, count * size)
    x = g.call("aten::reshape", x, [*shape[:axis], count, size, *shape[axis + 1 :]])
    order = [i for i in range(len(shape) + 1) if i != axis + 1]
    return x if axis == len(shape) - 1 else g.call("aten::permute", x, [*order, axis + 1])
