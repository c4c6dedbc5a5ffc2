"""Order statistics: aten::argsort, kthvalue, median; and aten::max and aten::min with indices.

Indices are int32, as those of aten::sort and aten::argmax. NaN counts as the largest; ATen's median of an
axis with a NaN is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import NUMBERS, Op, Tensor, boolean, integer
from tmconvert.symbolics.ops.reductions.reduce import reduced_type
from tmconvert.symbolics.ops.reductions.sort import INT32, order_of
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import RanksElements

Array = np.ndarray


def _same_shape(x: TensorType, dim: int, descending: bool, stable: bool) -> TensorType:
    normalized_axis(dim, x.rank)
    return TensorType(INT32, x.shape)


argsort = Op(
    "aten::argsort",
    args=[Tensor("x", NUMBERS), integer("dim", -1), boolean("descending", False), boolean("stable", False)],
    result=_same_shape,
    traits=[RanksElements()],
)

argsort.reference(lambda x, dim, descending, stable: order_of(x, dim, descending))
argsort.decompose(lambda g, x, dim, descending, stable: g.call("aten::sort", x, dim, descending, stable)[1])


def one_each(x: TensorType, dim: int, keepdim: bool) -> list[TensorType]:
    if x.shape[normalized_axis(dim, x.rank)] == 0:
        raise ValueError(f"axis {dim} of {x} has no elements: its size is 0")
    values = reduced_type(x, [dim], keepdim)
    return [values, TensorType(INT32, values.shape)]


def _kth(x: TensorType, k: int, dim: int, keepdim: bool) -> list[TensorType]:
    if not 1 <= k <= x.shape[normalized_axis(dim, x.rank)]:
        raise ValueError(f"axis {dim} of {x} has no element {k}")
    return one_each(x, dim, keepdim)


kthvalue = Op(
    "aten::kthvalue",
    args=[Tensor("x", NUMBERS), integer("k"), integer("dim", -1), boolean("keepdim", False)],
    result=_kth,
)
median, max_, min_ = (
    Op(
        f"aten::{name}",
        args=[Tensor("x", NUMBERS), integer("dim"), boolean("keepdim", False)],
        result=one_each,
    )
    for name in ("median", "max", "min")
)
OPS = [argsort, kthvalue, median, max_, min_]


def picked(x: Array, index: Array, dim: int, keepdim: bool) -> list[Array]:
    """Returns values and indices, from indices with their axis kept."""
    values = np.take_along_axis(x, index, dim)
    return [array if keepdim else np.squeeze(array, dim) for array in (values, index)]


@kthvalue.reference
def kthvalue_ref(x: Array, k: int, dim: int, keepdim: bool) -> list[Array]:
    return picked(x, np.take(order_of(x, dim, False), [k - 1], dim), dim, keepdim)


@kthvalue.decompose
def kthvalue_topk(g, x, k, dim, keepdim):
    parts = g.call("aten::topk", x, k, dim, False)
    if keepdim:
        return [g.call("aten::slice", part, dim, k - 1, k, 1) for part in parts]
    return [g.call("aten::select", part, dim, k - 1) for part in parts]


def _middle(extent: int) -> int:
    """Returns the index of the lower median in sorted order."""
    return (extent + 1) // 2


@median.reference
def median_ref(x: Array, dim: int, keepdim: bool) -> list[Array]:
    """Returns the median; NaN and its index where there is one."""
    order = np.take(order_of(x, dim, False), [_middle(x.shape[dim]) - 1], dim)
    is_nan = np.isnan(x)
    first = np.argmax(is_nan, dim, keepdims=True)
    return picked(x, np.where(is_nan.any(dim, keepdims=True), first, order).astype(INT32), dim, keepdim)


@median.decompose
def median_kthvalue(g, x, dim, keepdim):
    parts = g.call("aten::kthvalue", x, _middle(g.type(x).shape[dim]), dim, keepdim)
    if g.type(x).dtype.kind != "f":
        return parts
    is_nan = g.call("aten::to", g.call("aten::isnan", x), dtype="int32")
    found = g.call("aten::to", g.call("aten::amax", is_nan, [dim], keepdim), dtype="bool")
    first = g.call("aten::argmax", is_nan, dim, keepdim)
    nan = g.constant(np.nan, g.type(x).dtype)
    return [g.call("aten::where", found, *pair) for pair in zip((nan, first), parts, strict=True)]


@max_.reference
def max_ref(x: Array, dim: int, keepdim: bool) -> list[Array]:
    return picked(x, np.argmax(x, dim, keepdims=True).astype(INT32), dim, keepdim)


@min_.reference
def min_ref(x: Array, dim: int, keepdim: bool) -> list[Array]:
    return picked(x, np.argmin(x, dim, keepdims=True).astype(INT32), dim, keepdim)


def _extreme(g: Any, name: str, x: Any, dim: int, keepdim: bool) -> list[Any]:
    return [g.call(f"aten::a{name}", x, [dim], keepdim), g.call(f"aten::arg{name}", x, dim, keepdim)]


max_.decompose(lambda g, x, dim, keepdim: _extreme(g, "max", x, dim, keepdim))
min_.decompose(lambda g, x, dim, keepdim: _extreme(g, "min", x, dim, keepdim))
