"""Quantiles and mode: aten::quantile, nanquantile, nanmedian and mode."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor, boolean, choice, integer
from tmconvert.symbolics.ops.reductions.order_statistics import one_each, picked
from tmconvert.symbolics.ops.reductions.reduce import reduced_type
from tmconvert.symbolics.ops.reductions.sort import INT32, order_of
from tmconvert.symbolics.results import normalized_axis

Array = np.ndarray
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
ROUNDINGS = {"lower": "floor", "higher": "ceil", "nearest": "round"}


def _quantiles(x: TensorType, q: TensorType, dim: int, keepdim: bool, interpolation: str) -> TensorType:
    if q.rank > 1 or q.dtype != x.dtype:
        raise ValueError(f"{q} must be a scalar or vector of the type of {x}")
    if x.shape[normalized_axis(dim, x.rank)] == 0:
        raise ValueError(f"axis {dim} of {x} has no elements: its size is 0")
    return TensorType(x.dtype, (*q.shape, *reduced_type(x, [dim], keepdim).shape))


def _quantile(name: str) -> Op:
    return Op(
        f"aten::{name}",
        args=[
            Tensor("x", FLOATS), Tensor("q", FLOATS), integer("dim"), boolean("keepdim", False),
            choice("interpolation", INTERPOLATIONS, "linear"),
        ],
        result=_quantiles,
    )  # fmt: skip


quantile, nanquantile = _quantile("quantile"), _quantile("nanquantile")
nanmedian, mode = (
    Op(
        f"aten::{name}",
        args=[Tensor("x", NUMBERS), integer("dim", -1), boolean("keepdim", False)],
        result=one_each,
    )
    for name in ("nanmedian", "mode")
)
OPS = [quantile, nanquantile, nanmedian, mode]


def _between(x: Array, q: Array, dim: int, keepdim: bool, interpolation: str, *, skips_nan: bool) -> Array:
    """Returns the element at rank q (n - 1), from 0, of each row of n numbers; NaN without any."""
    rows = np.moveaxis(np.sort(x, dim), dim, -1)
    count = (~np.isnan(rows)).sum(-1)
    last = (count if skips_nan else np.where(count == rows.shape[-1], count, 0)) - 1
    rank = (q.reshape(-1, *[1] * last.ndim) * np.maximum(last, 0).astype(x.dtype)).astype(x.dtype)
    if interpolation in ROUNDINGS:
        rank = getattr(np, ROUNDINGS[interpolation])(rank)
    below, above = (
        np.take_along_axis(
            np.broadcast_to(rows, (*rank.shape, rows.shape[-1])), part.astype(np.int64)[..., None], -1
        )
        for part in (np.floor(rank), np.ceil(rank))
    )
    weight = 0.5 * (rank != np.floor(rank)) if interpolation == "midpoint" else rank - np.floor(rank)
    below, above = below[..., 0], above[..., 0]
    mixed = np.where(weight == 0, below, below + weight * (above - below))
    result = np.where(last < 0, np.nan, mixed).astype(x.dtype)
    result = np.expand_dims(result, dim % x.ndim + 1) if keepdim else result
    return result.reshape((*q.shape, *result.shape[1:]))


@quantile.reference
def quantile_ref(x: Array, q: Array, dim: int, keepdim: bool, interpolation: str) -> Array:
    """Quantiles along an axis; NaN where a row contains NaN."""
    return _between(x, q, dim, keepdim, interpolation, skips_nan=False)


@nanquantile.reference
def nanquantile_ref(x: Array, q: Array, dim: int, keepdim: bool, interpolation: str) -> Array:
    return _between(x, q, dim, keepdim, interpolation, skips_nan=True)


def _with_nan_last(x: Term, dim: int) -> tuple[list[Term], Term]:
    """Returns elements sorted along ``dim``, NaN (as infinity) last, their indices, and the count."""
    is_nan = x.isnan()
    parts = x.g.call("aten::sort", is_nan.where(np.inf, x).value, dim)
    count = (1 - is_nan.to(x.dtype)).sum(dim=[dim], keepdim=True)
    return [Term(x.g, part) for part in parts], count


def _interpolated(x: Term, q: Term, dim: int, keepdim: bool, interpolation: str, last: Term) -> Term:
    """``x`` is sorted along ``dim``; ``last`` is the index of the last number of each row."""
    g, shape = x.g, x.type.shape
    axis = dim % len(shape)
    others = [i for i in range(len(shape)) if i != axis]
    rows = Term(g, g.call("aten::permute", x.value, [*others, axis]))
    last = last.reshape(shape=[*(last.type.shape[i] for i in others), 1])
    rank = last * q.reshape(shape=[math.prod(q.type.shape)])
    if interpolation in ROUNDINGS:
        rank = rank.call(ROUNDINGS[interpolation])
    low, high = rank.floor(), rank.ceil()
    weight = (high - low) * 0.5 if interpolation == "midpoint" else rank - low
    below, above = (
        Term(g, g.call("aten::gather", rows.value, -1, part.to(np.int64).value)) for part in (low, high)
    )
    result = weight.eq(0).where(below, below + weight * (above - below))
    result = result.permute(dims=[len(others), *range(len(others))])
    return result.reshape(shape=[*q.type.shape, *reduced_type(x.type, [dim], keepdim).shape])


@formula(nanquantile)
def nanquantile_sorted(x: Term, q: Term, dim: int, keepdim: bool, interpolation: str) -> Term:
    (rows, _), count = _with_nan_last(x, dim)
    result = _interpolated(rows, q, dim, keepdim, interpolation, (count - 1).relu())
    return count.reshape(shape=reduced_type(x.type, [dim], keepdim).shape).eq(0).where(np.nan, result)


@formula(quantile)
def quantile_sorted(x: Term, q: Term, dim: int, keepdim: bool, interpolation: str) -> Term:
    (rows, _), count = _with_nan_last(x, dim)
    last = x.type.shape[dim] - 1
    result = _interpolated(rows, q, dim, keepdim, interpolation, count.mul(0) + last)
    count = count.reshape(shape=reduced_type(x.type, [dim], keepdim).shape)
    return (count < x.type.shape[dim]).where(np.nan, result)


@nanmedian.reference
def nanmedian_ref(x: Array, dim: int, keepdim: bool) -> list[Array]:
    """Returns the lower median of the numbers; NaN without any."""
    middle = np.maximum((~np.isnan(x)).sum(dim, keepdims=True) - 1, 0) // 2
    return picked(x, np.take_along_axis(order_of(x, dim, False), middle, dim), dim, keepdim)


@nanmedian.decompose
def nanmedian_sorted(g, x, dim, keepdim):
    if g.type(x).dtype.kind != "f":
        return g.call("aten::median", x, dim, keepdim)
    parts, count = _with_nan_last(Term(g, x), dim)
    middle = ((count - 1).relu() * 0.5).floor().to(np.int64).value
    found = [Term(g, g.call("aten::gather", part.value, dim, middle)) for part in parts]
    values = [count.eq(0).where(np.nan, found[0]), found[1]]
    shape = list(reduced_type(g.type(x), [dim], keepdim).shape)
    return [value.reshape(shape=shape).value for value in values]


@mode.reference
def mode_ref(x: Array, dim: int, keepdim: bool) -> list[Array]:
    """Returns the smallest of the most frequent elements, and its last index."""
    rows = np.moveaxis(x, dim, -1)
    frequency = (rows[..., np.newaxis] == rows[..., np.newaxis, :]).sum(-1)
    most = np.max(frequency, -1, keepdims=True)
    top = np.finfo(x.dtype).max if x.dtype.kind == "f" else np.iinfo(x.dtype).max
    least = np.where((frequency == most), rows, top).min(-1, keepdims=True)
    last = np.max(np.where(rows == least, np.arange(rows.shape[-1]), 0), -1, keepdims=True)
    return picked(x, np.moveaxis(last, -1, dim).astype(INT32), dim, keepdim)


@mode.decompose
def mode_counted(g, x, dim, keepdim):
    """Compares each element with all of its row."""
    type_ = g.type(x)
    axis = dim % type_.rank
    shape = type_.shape
    spread = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    along = [*shape[:axis], 1, *shape[axis:]]
    numbers = Term(g, x)
    same = numbers.reshape(shape=spread).eq(numbers.reshape(shape=along))
    frequency = same.to(np.int32).sum(dim=[axis + 1])
    is_most = frequency.eq(frequency.amax(dim=[axis], keepdim=True))
    top = np.finfo(type_.dtype).max if type_.dtype.kind == "f" else np.iinfo(type_.dtype).max
    least = is_most.where(numbers, top).amin(dim=[axis], keepdim=True)
    places = Term(g, g.call("aten::arange", 0, shape[axis], 1)).to(INT32)
    places = places.reshape(shape=[extent if i == axis else 1 for i, extent in enumerate(shape)])
    last = (numbers.eq(least).to(np.int32) * places).amax(dim=[axis], keepdim=True)
    result = list(reduced_type(type_, [dim], keepdim).shape)
    return [each.reshape(shape=result).value for each in (least, last)]
