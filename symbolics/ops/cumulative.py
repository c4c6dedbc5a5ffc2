"""Running results along one axis: aten::cumsum, cumprod, logcumsumexp, cummax and cummin.

Results have the element type of ``x``; ATen widens sums of integers, and sources say so with a cast.
Indices of cummax and cummin are int32 (ATen's: int64), of equal elements, and of NaN, the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import TensorType
from ..idioms import caffe
from ..op import FLOATS, NUMBERS, Op, Tensor, integer
from ..results import normalized_axis

Array = np.ndarray

INT32 = np.dtype(np.int32)


def _one(x: TensorType, dim: int) -> TensorType:
    normalized_axis(dim, x.rank)
    return x


def _two(x: TensorType, dim: int) -> list[TensorType]:
    return [_one(x, dim), TensorType(INT32, x.shape)]


def _op(name: str, dtypes: tuple[str, ...], result: Callable[..., Any]) -> Op:
    return Op(f"aten::{name}", args=[Tensor("x", dtypes), integer("dim")], result=result)


cumsum = _op("cumsum", NUMBERS, _one)
cumprod = _op("cumprod", NUMBERS, _one)
logcumsumexp = _op("logcumsumexp", FLOATS, _one)
cummax = _op("cummax", NUMBERS, _two)
cummin = _op("cummin", NUMBERS, _two)
OPS = [cumsum, cumprod, logcumsumexp, cummax, cummin]


@cumsum.reference
def cumsum_ref(x: Array, dim: int) -> Array:
    return np.cumsum(x, dim, dtype=x.dtype)


@cumprod.reference
def cumprod_ref(x: Array, dim: int) -> Array:
    return np.cumprod(x, dim, dtype=x.dtype)


@logcumsumexp.reference
def logcumsumexp_ref(x: Array, dim: int) -> Array:
    return np.logaddexp.accumulate(x, dim, dtype=x.dtype)


def _extremes(x: Array, dim: int, extreme: np.ufunc) -> list[Array]:
    values = extreme.accumulate(x, dim)
    places = np.arange(x.shape[dim], dtype=INT32).reshape(_along(x.ndim, dim))
    is_extreme = (x == values) | np.isnan(x)
    return [values, np.maximum.accumulate(np.where(is_extreme, places, 0), dim).astype(INT32)]


@cummax.reference
def cummax_ref(x: Array, dim: int) -> list[Array]:
    return _extremes(x, dim, np.maximum)


@cummin.reference
def cummin_ref(x: Array, dim: int) -> list[Array]:
    return _extremes(x, dim, np.minimum)


def _along(rank: int, dim: int) -> list[int]:
    """The shape of a vector that lies along ``dim``."""
    shape = [1] * rank
    shape[dim] = -1
    return shape


@cumsum.onnx(since=11)
def cumsum_onnx11(g, x, dim):
    return g.op("CumSum", x, g.ints(dim % len(x.shape)))


@cumsum.tflite()
def cumsum_tflite(g, x, dim):
    return g.op("CUMSUM", x, g.ints(dim % len(x.shape)))


def _scanned(g: Any, x: Any, dim: int, combine: Callable[[Any, Any], Any]) -> Any:
    """The running result of an associative operator, in log2(n) rounds.

    In each round every element is combined with the one ``step`` before it, which then stands for the
    ``step`` elements up to there. Source: Hillis and Steele, Data Parallel Algorithms, 1986.
    """
    extent, step = g.type(x).shape[dim], 1
    while step < extent:
        before = g.call("aten::slice", x, dim, 0, extent - step, 1)
        combined = combine(before, g.call("aten::slice", x, dim, step, extent, 1))
        x = g.call("aten::cat", [g.call("aten::slice", x, dim, 0, step, 1), combined], dim)
        step *= 2
    return x


@cumsum.decompose
def cumsum_scan(g, x, dim):
    return _scanned(g, x, dim, lambda before, last: g.call("aten::add", before, last))


@cumprod.decompose
def cumprod_scan(g, x, dim):
    return _scanned(g, x, dim, lambda before, last: g.call("aten::mul", before, last))


@logcumsumexp.decompose
def logcumsumexp_scan(g, x, dim):
    limit = float(np.finfo(g.type(x).dtype).max)

    def combine(before: Any, last: Any) -> Any:
        """log(exp(before) + exp(last)); the clamp keeps infinities apart from each other."""
        top = g.call("aten::clamp", g.call("aten::maximum", before, last), min=-limit, max=limit)
        powers = [g.call("aten::exp", g.call("aten::sub", part, top)) for part in (before, last)]
        return g.call("aten::add", top, g.call("aten::log", g.call("aten::add", *powers)))

    return _scanned(g, x, dim, combine)


def _scanned_extremes(g: Any, x: Any, dim: int, op: str) -> list[Any]:
    """The index is the largest so far of those at which the running extreme stands itself."""
    type_ = g.type(x)
    values = _scanned(g, x, dim, lambda before, last: g.call(op, before, last))
    is_extreme = g.call("aten::eq", x, values)
    if type_.dtype.kind == "f":
        is_extreme = g.call("aten::logical_or", is_extreme, g.call("aten::isnan", x))
    is_extreme = g.call("aten::to", is_extreme, dtype="int32")
    places = g.constant(np.arange(type_.shape[dim], dtype=INT32).reshape(_along(type_.rank, dim)))
    indices = g.call("aten::mul", is_extreme, places)
    return [values, _scanned(g, indices, dim, lambda before, last: g.call("aten::maximum", before, last))]


@cummax.decompose
def cummax_scan(g, x, dim):
    return _scanned_extremes(g, x, dim, "aten::maximum")


@cummin.decompose
def cummin_scan(g, x, dim):
    return _scanned_extremes(g, x, dim, "aten::minimum")


@cumsum.caffe()
def cumsum_caffe(g, x, dim):
    axis = dim % len(x.shape)
    return caffe.mapped_along(g, x, axis, np.tril(np.ones((x.shape[axis],) * 2)))
