"""aten::slice_scatter and aten::select_scatter: writes a slice along one axis."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.symbolic.dims import same_size
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integer
from tmconvert.symbolics.ops.shapes.slice import select, slice_
from tmconvert.symbolics.results import normalized_axis

Array = np.ndarray


def _slice_result(x: TensorType, src: TensorType, dim: int, start: int, end: int, step: int) -> TensorType:
    if src != slice_.result(x, dim, start, end, step):
        raise ValueError(f"src {src} does not fit the slice {start}:{end}:{step} of axis {dim} of {x}")
    return x


def _select_result(x: TensorType, src: TensorType, dim: int, index: int) -> TensorType:
    if src != select.result(x, dim, index):
        raise ValueError(f"src {src} does not fit the element {index} of axis {dim} of {x}")
    return x


TENSORS = [Tensor("x", ANY_DTYPE), Tensor("src", ANY_DTYPE)]
slice_scatter = Op(
    "aten::slice_scatter",
    args=[*TENSORS, integer("dim"), integer("start"), integer("end"), integer("step", 1)],
    result=_slice_result,
)
select_scatter = Op(
    "aten::select_scatter", args=[*TENSORS, integer("dim"), integer("index")], result=_select_result
)
OPS = [slice_scatter, select_scatter]


@slice_scatter.reference
def slice_scatter_ref(x: Array, src: Array, dim: int, start: int, end: int, step: int) -> Array:
    """``x`` with ``src`` in place of its elements ``start``, ``start + step``, ... below ``end``."""
    result = x.copy()
    np.moveaxis(result, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)
    return result


@slice_scatter.decompose
def slice_scatter_joined(g, x, src, dim, start, end, step):
    type_ = g.type(x)
    axis = normalized_axis(dim, type_.rank)
    extent = type_.shape[axis]
    if step != 1:
        return g.call("aten::index_copy", x, axis, numbers(g, start, end, step), src)
    before = [g.call("aten::slice", x, axis, 0, start)] if not same_size(start, 0) else []
    after = [g.call("aten::slice", x, axis, end, extent)] if not same_size(end, extent) else []
    parts = [*before, src, *after]
    return src if len(parts) == 1 else g.call("aten::cat", parts, axis)


@select_scatter.reference
def select_scatter_ref(x: Array, src: Array, dim: int, index: int) -> Array:
    """``x`` with ``src`` as its part ``index`` along ``dim``."""
    result = x.copy()
    np.moveaxis(result, dim, 0)[index] = src
    return result


@select_scatter.decompose
def select_scatter_slice(g, x, src, dim, index):
    shape = list(g.type(x).shape)
    axis = normalized_axis(dim, len(shape))
    shape[axis] = 1
    return g.call("aten::slice_scatter", x, g.call("aten::reshape", src, shape), axis, index, index + 1)
