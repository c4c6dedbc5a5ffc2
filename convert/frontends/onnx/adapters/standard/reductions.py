"""Reductions, and the indices of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, rank, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic

OPERATORS = OperatorTable()
Reduction = Callable[[Emitter, Any, list[int], bool], Any]


def _call(op: str) -> Reduction:
    def reduce(g: Emitter, x, axes: list[int], keep: bool) -> Any:
        dtype = g.type(x).dtype
        return cast(g, g.call(f"aten::{op}", x, axes, keep), dtype)

    return reduce


def _extreme(op: str) -> Reduction:
    def reduce(g: Emitter, x, axes: list[int], keep: bool) -> Any:
        dtype, shape = g.type(x).dtype, g.type(x).shape
        if dtype.kind == "b":
            return g.call("aten::any" if op == "amax" else "aten::all", x, axes, keep)
        if any(isinstance(shape[axis], int) and not shape[axis] for axis in axes):
            return _of_nothing(g, x, axes, keep, _least(dtype) if op == "amax" else _most(dtype))
        return g.call(f"aten::{op}", x, axes, keep)

    return reduce


def _least(dtype: np.dtype) -> float | int:
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _most(dtype: np.dtype) -> float | int:
    return math.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _of_nothing(g: Emitter, x, axes: list[int], keep: bool, value: float | int) -> Any:
    """The result of a reduction over an axis without elements."""
    shape = g.type(x).shape
    kept = [(1 if axis in axes else n) for axis, n in enumerate(shape) if keep or axis not in axes]
    return g.call("aten::expand", g.constant(value, g.type(x).dtype), kept)


def _log_sum_exp(g: Emitter, x, axes: list[int], keep: bool) -> Any:
    shape = g.type(x).shape
    if any(isinstance(shape[axis], int) and not shape[axis] for axis in axes):
        return _of_nothing(g, x, axes, keep, -math.inf)
    return _call("logsumexp")(g, x, axes, keep)


def _mean(g: Emitter, x, axes: list[int], keep: bool) -> Any:
    dtype = g.type(x).dtype
    if dtype.kind == "f":
        return g.call("aten::mean", x, axes, keep)
    whole = cast(g, g.call("aten::sum", x, axes, keep), dtype)
    count = int(np.prod([g.type(x).shape[axis] for axis in axes]))
    return g.call("tm::trunc_divide", whole, g.constant(count, dtype))


def _prod(g: Emitter, x, axes: list[int], keep: bool) -> Any:
    dtype = g.type(x).dtype
    for axis in sorted(axes, reverse=True):
        x = g.call("aten::prod", x, [axis], keep)
    return cast(g, x, dtype)


def _norm(order: int) -> Reduction:
    def reduce(g: Emitter, x, axes: list[int], keep: bool) -> Any:
        if g.type(x).dtype.kind == "f":
            return g.call("aten::linalg_vector_norm", x, order, axes, keep)
        if order == 1:
            return _call("sum")(g, g.call("aten::abs", x), axes, keep)
        squares = _call("sum")(g, g.call("aten::mul", x, x), axes, keep)
        return cast(g, g.call("aten::sqrt", cast(g, squares, np.float64)), g.type(x).dtype)

    return reduce


def _sum_square(g: Emitter, x, axes: list[int], keep: bool) -> Any:
    return _call("sum")(g, g.call("aten::mul", x, x), axes, keep)


def _log_sum(g: Emitter, x, axes: list[int], keep: bool) -> Any:
    return g.call("aten::log", g.call("aten::sum", x, axes, keep))


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": _call("sum"),
    "ReduceMean": _mean,
    "ReduceMax": _extreme("amax"),
    "ReduceMin": _extreme("amin"),
    "ReduceProd": _prod,
    "ReduceL1": _norm(1),
    "ReduceL2": _norm(2),
    "ReduceSumSquare": _sum_square,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
}
_SINCE = {"ReduceSum": 13}  # opset from which axes are an input; 18 for the others


def _reduced(g: Emitter, x, axes, keepdims: int, apply: Reduction, is_noop: bool) -> Any:
    places = list(range(rank(g, x))) if not axes else sorted({axis_of(g, x, axis) for axis in axes})
    if not axes and is_noop:
        return x if apply in _PLAIN else apply(g, x, [], bool(keepdims))
    return apply(g, x, places, bool(keepdims)) if places else apply(g, x, [], bool(keepdims))


def _add(name: str, apply: Reduction) -> None:
    @OPERATORS.add(name, since=_SINCE.get(name, 18))
    def adapter(g, data, axes=None, *, keepdims=1, noop_with_empty_axes=0):
        given = [] if axes is None else static_ints(g, axes, "the axes of a reduction")
        if not given and noop_with_empty_axes:
            return _of_each(g, data, name)
        return _reduced(g, data, given, keepdims, apply, False)

    @OPERATORS.add(name)
    def adapter1(g, data, *, axes=None, keepdims=1):
        return _reduced(g, data, axes, keepdims, apply, False)


_PLAIN = frozenset(_REDUCTIONS[name] for name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"))


def _of_each(g: Emitter, x, name: str) -> Any:
    """The effect of a reduction over no axis on each element."""
    if name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp"):
        return x
    if name in ("ReduceL1", "ReduceL2"):
        return g.call("aten::abs", x)
    return g.call("aten::mul", x, x) if name == "ReduceSumSquare" else g.call("aten::log", x)


for _name, _apply in _REDUCTIONS.items():
    _add(_name, _apply)


def _arg(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, data, *, axis=0, keepdims=1, select_last_index=0):
        place = axis_of(g, data, axis)
        if not select_last_index:
            return cast(g, g.call(f"aten::{op}", data, place, bool(keepdims)), np.int64)
        extent = g.type(data).shape[place]
        found = g.call(f"aten::{op}", g.call("aten::flip", data, [place]), place, bool(keepdims))
        return g.call("aten::sub", g.constant(extent - 1, np.int64), cast(g, found, np.int64))


for _name, _op in {"ArgMax": "argmax", "ArgMin": "argmin"}.items():
    _arg(_name, _op)


@OPERATORS.add("CumSum")
def cum_sum(g, x, axis, *, exclusive=0, reverse=0):
    return _cumulative(g, x, axis, exclusive, reverse, "aten::cumsum", 0)


@OPERATORS.add("CumProd")
def cum_prod(g, x, axis, *, exclusive=0, reverse=0):
    return _cumulative(g, x, axis, exclusive, reverse, "aten::cumprod", 1)


def _cumulative(g: Emitter, x, axis, exclusive: int, reverse: int, op: str, neutral: int) -> Any:
    (number,) = static_ints(g, axis, "the axis of a cumulative operator")
    place, dtype = axis_of(g, x, number), g.type(x).dtype
    x = g.call("aten::flip", x, [place]) if reverse else x
    if exclusive:
        shape = list(g.type(x).shape)
        if not shape[place]:
            raise Refusal("an exclusive sum over an empty axis is not supported")
        x = g.call("aten::slice", x, place, 0, shape[place] - 1, 1)
        if is_symbolic(shape):
            pairs = [size for axis in range(len(shape)) for size in (int(axis == place), 0)]
            x = g.call("aten::pad", x, pairs, "constant", neutral)
        else:
            first = g.constant(np.full([1 if i == place else n for i, n in enumerate(shape)], neutral, dtype))
            x = g.call("aten::cat", [first, x], place)
    made = cast(g, g.call(op, x, place), dtype)
    return g.call("aten::flip", made, [place]) if reverse else made
