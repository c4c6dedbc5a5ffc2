"""Cumulative ops along one axis: aten::cumsum, cumprod, logcumsumexp, cummax and cummin.

Results have the element type of ``x``; ATen widens sums of integers, and sources say so with a cast.
Indices of cummax and cummin are int32 (ATen's: int64), of equal elements, and of NaN, the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.ir.emitter import empty_body
from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.ir.symbolic.signs import signs
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor, integer
from tmconvert.symbolics.results import normalized_axis

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


cumsum.reference(lambda x, dim: np.cumsum(x, dim, dtype=x.dtype))
cumprod.reference(lambda x, dim: np.cumprod(x, dim, dtype=x.dtype))
logcumsumexp.reference(lambda x, dim: np.logaddexp.accumulate(x, dim, dtype=x.dtype))


def _extremes(x: Array, dim: int, extreme: np.ufunc) -> list[Array]:
    values = extreme.accumulate(x, dim)
    places = np.arange(x.shape[dim], dtype=INT32).reshape(_along(x.ndim, dim))
    is_extreme = (x == values) | np.isnan(x)
    return [values, np.maximum.accumulate(np.where(is_extreme, places, 0), dim).astype(INT32)]


cummax.reference(lambda x, dim: _extremes(x, dim, np.maximum))
cummin.reference(lambda x, dim: _extremes(x, dim, np.minimum))


def _along(rank: int, dim: int) -> list[int]:
    """Returns the shape of a vector along ``dim``."""
    shape = [1] * rank
    shape[dim] = -1
    return shape


cumsum.onnx(since=11)(lambda g, x, dim: g.op("CumSum", x, g.ints(dim % len(x.shape))))


@cumsum.tflite()
def cumsum_tflite(g, x, dim):
    dim %= len(x.shape)
    if dim or len(x.shape) > 3 or is_symbolic(x.shape):
        return g.op("CUMSUM", x, g.ints(dim))
    # LiteRT 2.3's GPU takes the first axis for the batch, and computes it wrong
    batched = idioms.tflite.reshaped(g, x, (1, *x.shape))
    return idioms.tflite.reshaped(g, g.op("CUMSUM", batched, g.ints(1)), x.shape)


def _scanned(g: Any, x: Any, dim: int, combine: Callable[[Any, Any, Any], Any], identity: float) -> Any:
    """Parallel scan with an associative operator ``combine(g, before, last)``, in log2(n) steps.

    In each round every element is combined with the one ``step`` before it, which then stands for the
    ``step`` elements up to there. Source: Hillis and Steele, Data Parallel Algorithms, 1986. How many rounds
    there are depends on the extent: where that is a dynamic dimension, a scan goes element by element, and
    begins with ``identity``.
    """
    extent, step = g.type(x).shape[dim], 1
    if isinstance(extent, Dim):
        dtype = g.type(x).dtype

        def once(inner: Any, before: list[Any], last: Any) -> tuple[list[Any], list[Any]]:
            after = combine(inner, before[0], last)
            return [after], [after]

        return _stepwise(g, x, dim, [_filled(g, x, dim, identity, dtype)], once)[0]
    while step < extent:
        before = g.call("aten::slice", x, dim, 0, extent - step, 1)
        combined = combine(g, before, g.call("aten::slice", x, dim, step, extent, 1))
        x = g.call("aten::cat", [g.call("aten::slice", x, dim, 0, step, 1), combined], dim)
        step *= 2
    return x


def _filled(g: Any, x: Any, dim: int, number: float, dtype: np.dtype) -> Any:
    """Returns ``number`` in the shape of ``x`` without its axis ``dim``."""
    rest = _without(g.type(x).shape, dim)
    value = g.constant(np.array(number, dtype))
    return g.call("aten::expand", value, rest) if rest else value


def _may_be_empty(extent: int) -> bool:
    return 0 in signs(extent)


def _without(shape: Sequence[int], dim: int) -> list[int]:
    axis = dim % len(shape)
    return [*shape[:axis], *shape[axis + 1 :]]


def _stepwise(g: Any, x: Any, dim: int, state: list[Any], once: Callable[..., Any]) -> list[Any]:
    """Sequential scan along ``dim``: ``once(g, state, slice)`` returns the next state, and the stacked
    output.

    An extent such as that of a slice may be 0, and ONNX Runtime's Scan needs a step: the first state,
    which changes nothing, goes before the others.
    """
    type_ = g.type(x)
    axis = dim % type_.rank
    types = [*map(g.type, state), TensorType(type_.dtype, tuple(_without(type_.shape, axis)))]
    inner, inputs = empty_body("running", types, g.catalogue)
    after, stacked = once(inner, list(inputs[:-1]), inputs[-1])
    inner.graph.set_result((*after, *stacked))
    others = [i for i in range(type_.rank) if i != axis]
    first = g.call("aten::permute", x, [axis, *others]) if axis else x
    may_be_empty = _may_be_empty(type_.shape[axis])
    if may_be_empty:
        row = g.call("aten::reshape", state[0], [1, *_without(type_.shape, axis)])
        first = g.call("aten::cat", [row, first], 0)
    results = g.call("tm::scan", [*state, first], len(state), 1, inner.graph)[len(state) :]
    if may_be_empty:
        rows = numbers(g, 1, 1 + type_.shape[axis])  # not slices: each would have a size of its own
        results = [g.call("aten::index_select", each, 0, rows) for each in results]
    back = [*range(1, axis + 1), 0, *range(axis + 1, type_.rank)]
    return [g.call("aten::permute", each, back) for each in results] if axis else list(results)


@cumsum.decompose
def cumsum_scan(g, x, dim):
    return _scanned(g, x, dim, lambda g, before, last: g.call("aten::add", before, last), 0)


cumprod.onnx(since=26)(lambda g, x, dim: g.op("CumProd", x, g.const(np.array(dim % len(x.shape), np.int64))))


@cumprod.decompose
def cumprod_scan(g, x, dim):
    return _scanned(g, x, dim, lambda g, before, last: g.call("aten::mul", before, last), 1)


@logcumsumexp.decompose
def logcumsumexp_scan(g, x, dim):
    limit = float(np.finfo(g.type(x).dtype).max)

    def combine(g: Any, before: Any, last: Any) -> Any:
        """log(exp(before) + exp(last)); the clamp keeps infinities apart from each other."""
        top = g.call("aten::clamp", g.call("aten::maximum", before, last), min=-limit, max=limit)
        powers = [g.call("aten::exp", g.call("aten::sub", part, top)) for part in (before, last)]
        return g.call("aten::add", top, g.call("aten::log", g.call("aten::add", *powers)))

    return _scanned(g, x, dim, combine, -math.inf)


def _scanned_extremes(g: Any, x: Any, dim: int, op: str, identity: Callable[[np.dtype], float]) -> list[Any]:
    """Parallel scan of extremes and their last indices."""
    type_ = g.type(x)
    if isinstance(type_.shape[dim], Dim):
        return _stepwise_extremes(g, x, dim, "aten::ge" if op == "aten::maximum" else "aten::le", identity)
    values = _scanned(g, x, dim, lambda g, before, last: g.call(op, before, last), identity(type_.dtype))
    is_extreme = g.call("aten::eq", x, values)
    if type_.dtype.kind == "f":
        is_extreme = g.call("aten::logical_or", is_extreme, g.call("aten::isnan", x))
    is_extreme = g.call("aten::to", is_extreme, dtype="int32")
    places = g.constant(np.arange(type_.shape[dim], dtype=INT32).reshape(_along(type_.rank, dim)))
    indices = g.call("aten::mul", is_extreme, places)
    return [values, _scanned(g, indices, dim, lambda g, *both: g.call("aten::maximum", *both), 0)]


def _stepwise_extremes(g: Any, x: Any, dim: int, op: str, identity: Callable[[np.dtype], float]) -> list[Any]:
    """Sequential scan of extremes and their last indices."""
    dtype = g.type(x).dtype

    def once(inner: Any, before: list[Any], last: Any) -> tuple[list[Any], list[Any]]:
        extreme, index, number = before
        is_extreme = inner.call(op, last, extreme)  # not of a NaN before it, which stays
        if dtype.kind == "f":
            is_extreme = inner.call("aten::logical_or", is_extreme, inner.call("aten::isnan", last))
        extreme = inner.call("aten::where", is_extreme, last, extreme)
        index = inner.call("aten::where", is_extreme, number, index)
        following = inner.call("aten::add", number, inner.constant(np.array(1, INT32)))
        return [extreme, index, following], [extreme, index]

    state = [
        _filled(g, x, dim, identity(dtype), dtype),
        _filled(g, x, dim, 0, INT32),
        g.constant(np.array(-1 if _may_be_empty(g.type(x).shape[dim]) else 0, INT32)),
    ]
    return _stepwise(g, x, dim, state, once)


def _least(dtype: np.dtype) -> float:
    return -math.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _most(dtype: np.dtype) -> float:
    return math.inf if dtype.kind == "f" else np.iinfo(dtype).max


cummax.decompose(lambda g, x, dim: _scanned_extremes(g, x, dim, "aten::maximum", _least))
cummin.decompose(lambda g, x, dim: _scanned_extremes(g, x, dim, "aten::minimum", _most))


@cumsum.caffe()
def cumsum_caffe(g, x, dim):
    axis = dim % len(x.shape)
    return idioms.caffe.mapped_along(g, x, axis, np.tril(np.ones((x.shape[axis],) * 2)))
