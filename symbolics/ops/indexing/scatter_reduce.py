"""aten::scatter_add, aten::scatter_reduce and aten::index_reduce.

``tm::scatter_prod``, ``tm::scatter_amax`` and ``tm::scatter_amin`` are to products and extremes what
aten::scatter_add is to sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import counted_from_the_front, numbers, scattered
from tmconvert.symbolics.idioms.tflite_scattering import folded
from tmconvert.symbolics.op import ANY_DTYPE, NUMBERS, Op, Tensor, boolean, choice
from tmconvert.symbolics.ops.indexing.gather import PLACES, element_indices, scatter_result
from tmconvert.symbolics.ops.indexing.index_select import SELECTED, copy_result

Array = np.ndarray
Number = int | float

UFUNCS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
# reduction: (op, the opset of that reduction and its name there)
FOLDS = {
    "sum": ("aten::scatter_add", 16, "add"),
    "prod": ("tm::scatter_prod", 16, "mul"),
    "amax": ("tm::scatter_amax", 18, "max"),
    "amin": ("tm::scatter_amin", 18, "min"),
}


def _neutral(reduce: str, dtype: np.dtype) -> Number:
    """Returns the neutral element of a reduction."""
    value = {"sum": 0, "prod": 1, "amax": -math.inf, "amin": math.inf, "mean": 0}[reduce]
    if dtype.kind == "b":
        return int(value > 0)
    if dtype.kind in "iu" and not math.isfinite(value):
        limits = np.iinfo(dtype)
        return int(limits.min if value < 0 else limits.max)
    return value


def _fold(reduce: str) -> Op:
    name, since, onnx_name = FOLDS[reduce]
    op = Op(name, args=[Tensor("x", ANY_DTYPE), *PLACES, Tensor("src", ANY_DTYPE)], result=scatter_result)

    @op.reference
    def fold_ref(x: Array, dim: int, index: Array, src: Array) -> Array:
        """Like aten::scatter, but each element of ``src`` is combined with the existing one."""
        result = x.copy()
        UFUNCS[reduce].at(result, element_indices(index, dim), src)
        return result

    def fold_onnx(g, x, dim, index, src):
        return scattered(g, "ScatterElements", x, index, src, axis=dim % len(x.shape), reduction=onnx_name)

    op.tflite()(lambda g, x, dim, index, src: folded(g, reduce, x, dim % len(x.shape), index, src))
    fold_onnx.__name__ = f"fold_onnx{since}"
    op.onnx(since)(fold_onnx)

    @op.decompose
    def fold_parts(g, x, dim, index, src):
        """Returns the elements for each index, and neutral ones elsewhere."""
        type_ = g.type(index)
        if 0 in (*type_.shape, *g.type(x).shape):
            return x
        if g.type(x).dtype == np.bool_:  # a sum is then whether any is true
            wide = [g.call("aten::to", each, dtype="int32") for each in (x, src)]
            return g.call("aten::to", g.call(name, wide[0], dim, index, wide[1]), dtype="bool")
        axis, extent = dim % type_.rank, g.type(x).shape[dim]
        column = [*type_.shape[: axis + 1], 1, *type_.shape[axis + 1 :]]
        places = g.call("aten::reshape", counted_from_the_front(g, index, extent), column)
        each = g.call("aten::to", numbers(g, 0, extent), dtype=type_.dtype.name)
        each = g.call("aten::reshape", each, [extent, *[1] * (type_.rank - axis - 1)])
        here = g.call("aten::eq", places, each)
        neutral = g.constant(_neutral(reduce, g.type(x).dtype), g.type(x).dtype)
        parts = g.call("aten::where", here, g.call("aten::reshape", src, column), neutral)
        total = _widened(g, g.call(f"aten::{reduce}", parts, [axis]), g.type(x).shape, neutral)
        both = [g.call("aten::reshape", each, [1, *g.type(x).shape]) for each in (x, total)]
        return g.call(f"aten::{reduce}", g.call("aten::cat", both), [0])

    return op


def _widened(g: Any, x: Any, shape: tuple[int, ...], filler: Any) -> Any:
    """Pads the ends of ``x`` with ``filler`` up to ``shape``."""
    for axis, extent in enumerate(shape):
        here = list(g.type(x).shape)
        if here[axis] != extent:
            here[axis] = extent - here[axis]
            x = g.call("aten::cat", [x, g.call("aten::expand", filler, here)], axis)
    return x


FOLD_OPS = {reduce: _fold(reduce) for reduce in FOLDS}


def _reduce_result(
    x: TensorType, dim: int, index: TensorType, src: TensorType, reduce: str, include_self: bool
) -> TensorType:
    if reduce == "mean" and x.dtype == np.bool_:
        raise TypeError(f"the mean of {x} is not supported")
    return scatter_result(x, dim, index, src)


def _index_reduce_result(
    x: TensorType, dim: int, index: TensorType, source: TensorType, reduce: str, include_self: bool
) -> TensorType:
    return copy_result(x, dim, index, source)


scatter_reduce = Op(
    "aten::scatter_reduce",
    args=[
        Tensor("x", ANY_DTYPE), *PLACES, Tensor("src", ANY_DTYPE),
        choice("reduce", ("sum", "prod", "mean", "amax", "amin")), boolean("include_self", True),
    ],
    result=_reduce_result,
)  # fmt: skip
index_reduce = Op(
    "aten::index_reduce",
    args=[
        Tensor("x", NUMBERS), *SELECTED, Tensor("source", NUMBERS),
        choice("reduce", ("prod", "mean", "amax", "amin")), boolean("include_self", True),
    ],
    result=_index_reduce_result,
)  # fmt: skip
OPS = [*FOLD_OPS.values(), scatter_reduce, index_reduce]


@scatter_reduce.reference
def scatter_reduce_ref(
    x: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool
) -> Array:
    """Like aten::scatter with a reduction, with or without the element of ``x``.

    The mean of integers is rounded down. Source: torch.Tensor.scatter_reduce.
    """
    return _reduced(x, element_indices(index, dim), src, reduce, include_self)


@index_reduce.reference
def index_reduce_ref(
    x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool
) -> Array:
    """Like aten::index_copy with a reduction, with or without the slice of ``x``."""
    place = (*[slice(None)] * (dim % x.ndim), index)
    return _reduced(x, place, source, reduce, include_self)


def _reduced(x: Array, place: Any, src: Array, reduce: str, include_self: bool) -> Array:
    result = x.copy()
    if not include_self:
        result[place] = _neutral(reduce, x.dtype)
    UFUNCS.get(reduce, np.add).at(result, place, src)
    if reduce != "mean":
        return result
    count = np.full(x.shape, int(include_self), np.int64)
    np.add.at(count, place, 1)
    count = np.maximum(count, 1).astype(x.dtype)
    return result / count if x.dtype.kind == "f" else result // count


@scatter_reduce.decompose
def scatter_reduce_folded(g, x, dim, index, src, reduce, include_self):
    type_, shape = g.type(x), list(g.type(index).shape)
    if 0 in (*shape, *type_.shape):
        return x
    if not include_self:
        x = _emptied(g, x, dim, index, g.constant(_neutral(reduce, type_.dtype), type_.dtype))
    if reduce != "mean":
        return g.call(FOLD_OPS[reduce].name, x, dim, index, src)
    total = Term(g, g.call("aten::scatter_add", x, dim, index, src))
    # counts of int64, exact whatever the type of x
    ones = g.call("aten::expand", g.constant(1, np.int64), shape)
    before = g.call("aten::expand", g.constant(int(include_self), np.int64), list(type_.shape))
    count = Term(g, g.call("aten::scatter_add", before, dim, index, ones))
    count = count.eq(0).where(1, count)
    if type_.dtype.kind == "f":
        return (total / count.to(type_.dtype)).value
    total = total.to("int64")
    toward_zero = total.call("tm::trunc_divide", count)
    # -1 where there is a negative rest, without a comparison, which old opsets do not have for int64
    lower = (total - toward_zero * count - count + 1).call("tm::trunc_divide", count)
    return (toward_zero + lower).to(type_.dtype).value


def _emptied(g: Any, x: Any, dim: int, index: Any, neutral: Any) -> Any:
    """Replaces written elements of ``x`` by the ``neutral`` element."""
    known = g.known(index)
    if known is None:
        nothing = g.call("aten::expand", neutral, list(g.type(index).shape))
        return g.call("aten::scatter", x, dim, index, nothing)
    is_met = np.zeros(g.type(x).shape, bool)
    is_met[element_indices(known, dim)] = True
    return g.call("aten::where", g.constant(is_met), neutral, x)


@index_reduce.decompose
def index_reduce_scattered(g, x, dim, index, source, reduce, include_self):
    shape = list(g.type(source).shape)
    column = [1] * len(shape)
    column[dim] = shape[dim]
    places = g.call("aten::expand", g.call("aten::reshape", index, column), shape)
    return g.call("aten::scatter_reduce", x, dim, places, source, reduce, include_self)
