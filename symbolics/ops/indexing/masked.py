"""aten::masked_fill and aten::masked_scatter: elements replaced where a mask is true."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor
from tmconvert.symbolics.traits import ChoosesByCondition

Array = np.ndarray

MASKED = [Tensor("x", ANY_DTYPE), Tensor("mask", ("bool",))]


def _fill_result(x: TensorType, mask: TensorType, value: TensorType) -> TensorType:
    if value != TensorType(x.dtype, ()):
        raise TypeError(f"value {value} does not have the type of {x}")
    return TensorType(x.dtype, broadcast_shapes(x.shape, mask.shape))


def _scatter_result(x: TensorType, mask: TensorType, source: TensorType) -> TensorType:
    if source.dtype != x.dtype:
        raise TypeError(f"different dtypes: {x}, {source}")
    return TensorType(x.dtype, broadcast_shapes(x.shape, mask.shape))


masked_fill = Op(
    "aten::masked_fill",
    args=[*MASKED, Tensor("value", ANY_DTYPE)],
    result=_fill_result,
    layout=ANY,
    traits=[ChoosesByCondition()],
)
masked_scatter = Op(
    "aten::masked_scatter", args=[*MASKED, Tensor("source", ANY_DTYPE)], result=_scatter_result
)
OPS = [masked_fill, masked_scatter]


masked_fill.reference(lambda x, mask, value: np.where(mask, value, x))
formula(masked_fill)(lambda x, mask, value: mask.where(value, x))


@masked_scatter.reference
def masked_scatter_ref(x: Array, mask: Array, source: Array) -> Array:
    """Replaces the n-th true element of ``mask`` by the n-th element of ``source``."""
    x, mask = np.broadcast_arrays(x, mask)
    result = x.copy()
    result[mask] = source.reshape(-1)[: mask.sum()]
    return result


@masked_scatter.decompose
def masked_scatter_selected(g, x, mask, source):
    shape = list(broadcast_shapes(g.type(x).shape, g.type(mask).shape))
    x, mask = (
        value if list(g.type(value).shape) == shape else g.call("aten::expand", value, shape)
        for value in (x, mask)
    )
    if 0 in (*shape, *g.type(source).shape):
        return x
    here = Term(g, g.call("aten::reshape", mask, [g.type(mask).size])).to("int64")
    places = (here.cumsum(dim=0) - 1) * here  # the first where the mask is false
    count = g.type(source).size
    row = g.call("aten::reshape", source, [count])
    if isinstance(count, Dim):  # there may be none
        row = g.call("aten::cat", [row, g.constant(np.zeros(1, g.type(row).dtype))], 0)
    chosen = g.call("aten::reshape", g.call("aten::index_select", row, 0, places.value), shape)
    return g.call("aten::where", mask, chosen, x)
