"""Sums, means and extremes over axes, with torch's result types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.elementwise.arithmetic import ATEN as ARITHMETIC
from tmconvert.frontends.torch.adapters.elementwise.logic import nonzero_mask
from tmconvert.frontends.torch.adapters.values import (
    axes_of,
    axis_of,
    cast,
    floating,
    indices,
    is_tensor,
    kind_of,
    promoted,
    rank,
    reshaped,
    typed,
    varargs,
)
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.signs import may_be_zero

ATEN, METHODS = Table(), Table()


def axes_given(g: Emitter, x, dim) -> list[int] | None:
    """Returns the axes to reduce; None means all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return None
    return list(axes_of(g, x, dim)) if rank(g, x) else None


def reduced(g: Emitter, op: str, x, dim, keepdim: bool, *more) -> Any:
    return g.call(op, x, axes_given(g, x, dim), *more, keepdim=keepdim)


def _summed(g, x, dtype):
    """Casts integers and bools to int64 for sums."""
    if dtype is not None:
        return typed(g, x, dtype)
    return cast(g, x, np.int64) if kind_of(g.type(x).dtype) < 2 else x


@ATEN.add("sum")
def sum_(g, input, dim=None, keepdim=False, *, dtype=None):
    return reduced(g, "aten::sum", _summed(g, input, dtype), dim, keepdim)


@ATEN.add("prod")
def prod(g, input, dim=None, keepdim=False, *, dtype=None):
    return reduced(g, "aten::prod", _summed(g, input, dtype), dim, keepdim)


def _running(name: str) -> None:
    def adapter(g, input, dim, *, dtype=None):
        x = _summed(g, input, dtype)
        return g.call(f"aten::{name}", x, axis_of(g, x, dim)) if rank(g, x) else x

    ATEN.add(name)(adapter)


_running("cumsum")
_running("cumprod")


@ATEN.add("diff")
def diff(g, input, n=1, dim=-1, prepend=None, append=None):
    """Differences of adjacent elements, ``n`` times; of bools, whether they differ."""
    if n == 0:
        return input
    axis = axis_of(g, input, dim)
    parts = [part for part in (prepend, input, append) if part is not None]
    x = g.call("aten::cat", promoted(g, *parts), axis) if len(parts) > 1 else input
    op = "aten::logical_xor" if kind_of(g.type(x).dtype) == 0 else "aten::sub"
    for _ in range(n):
        count = g.type(x).shape[axis]
        if count == 0:
            break
        x = g.call(op, *(g.call("aten::slice", x, axis, i, count - 1 + i, 1) for i in (1, 0)))
    return x


@ATEN.add("nansum")
def nansum(g, input, dim=None, keepdim=False, *, dtype=None):
    x = typed(g, input, dtype)
    return sum_(g, x if kind_of(g.type(x).dtype) < 2 else _without_nans(g, x)[0], dim, keepdim)


def _without_nans(g: Emitter, x) -> tuple[Any, Any]:
    """Returns ``x`` with NaNs replaced by zeros, and a mask of them."""
    places = g.call("aten::isnan", x)
    return g.call("aten::where", places, g.constant(0, g.type(x).dtype), x), places


@ATEN.add("mean")
def mean(g, input, dim=None, keepdim=False, *, dtype=None):
    x = typed(g, input, dtype)
    if kind_of(g.type(x).dtype) < 2:
        raise Refusal("the mean of an integer tensor needs a dtype")
    shape, axes = g.type(x).shape, axes_given(g, x, dim)
    extents = [shape[axis] for axis in (range(len(shape)) if axes is None else axes)]
    if any(map(may_be_zero, extents)):
        # ONNX Runtime's mean of no elements is 0, where a quotient is NaN
        total = g.call("aten::sum", x, axes, keepdim=keepdim)
        return g.call("aten::div", total, g.constant(math.prod(extents), g.type(x).dtype))
    return g.call("aten::mean", x, axes, keepdim=keepdim)


@ATEN.add("nanmean")
def nanmean(g, input, dim=None, keepdim=False, *, dtype=None):
    x, places = _without_nans(g, floating(g, typed(g, input, dtype)))
    numbers = cast(g, g.call("aten::logical_not", places), g.type(x).dtype)
    total, count = (reduced(g, "aten::sum", each, dim, keepdim) for each in (x, numbers))
    return g.call("aten::div", total, count)


@ATEN.add("logsumexp", "special_logsumexp")
def logsumexp(g, input, dim, keepdim=False):
    return reduced(g, "aten::logsumexp", floating(g, input), dim, keepdim)


# ---- all and any


def _quantified(name: str) -> None:
    def adapter(g: Emitter, input, dim=None, keepdim: bool = False) -> Any:
        result = nonzero_mask(g, input)
        if dim is None or len(dim if isinstance(dim, (list, tuple)) else [dim]):
            result = reduced(g, f"aten::{name}", result, dim, keepdim)
        return cast(g, result, np.uint8) if g.type(input).dtype == np.uint8 else result

    ATEN.add(name, f"_is_{name}_true")(adapter)


_quantified("all")
_quantified("any")


@METHODS.add("count_nonzero")
def method_count_nonzero(g, self, *dim, **named):
    return count_nonzero(g, self, *(() if not dim else [varargs(dim)]), **named)


@ATEN.add("count_nonzero")
def count_nonzero(g, input, dim=None):
    return indices(g, g.call("aten::count_nonzero", input, axes_given(g, input, dim)))


# ---- spread


def _spread(name: str) -> None:
    def adapter(
        g: Emitter, input, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=None
    ) -> Any:
        if isinstance(dim, bool):  # var(x, unbiased)
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        result = g.call(
            f"aten::{name}", input, axes_given(g, input, dim), correction=correction, keepdim=keepdim
        )
        return tuple(result) if isinstance(result, list) else result

    ATEN.add(name)(adapter)


for _name in ("var", "std", "var_mean", "std_mean"):
    _spread(_name)


# ---- extremes


def _extreme(op: str) -> None:
    """amax and amin, and the three forms of torch.max and torch.min."""

    def reduce(g: Emitter, input, dim=(), keepdim: bool = False) -> Any:
        if g.type(input).dtype.kind != "b":
            return reduced(g, f"aten::a{op}", input, dim, keepdim)
        return reduced(g, "aten::any" if op == "max" else "aten::all", input, dim, keepdim)

    def adapter(g: Emitter, input, dim=None, keepdim: bool = False, *, other=None) -> Any:
        if is_tensor(dim) or other is not None:
            return ARITHMETIC[f"{op}imum"](g, input, dim if other is None else other)
        return (
            reduce(g, input)
            if dim is None
            else with_places(g, f"aten::{op}", input, dim=dim, keepdim=keepdim)
        )

    ATEN.add(f"a{op}")(reduce)
    ATEN.add(op)(adapter)


def with_places(g: Emitter, op: str, x, *args, **attributes) -> Any:
    """Returns values and their int64 indices along ``dim``. A tensor of rank 0 counts as one element."""
    dtype = g.type(x).dtype
    x = cast(g, x, np.uint8) if dtype.kind == "b" else x
    is_scalar = not rank(g, x)
    x = reshaped(g, x, [1]) if is_scalar else x
    attributes["dim"] = axis_of(g, x, attributes["dim"])
    values, places = g.call(op, x, *args, **attributes)
    if is_scalar:
        values, places = reshaped(g, values, []), reshaped(g, places, [])
    return cast(g, values, dtype), indices(g, places)


_extreme("max")
_extreme("min")


@ATEN.add("aminmax")
def aminmax(g, input, *, dim=None, keepdim=False):
    return ATEN["amin"](g, input, dim, keepdim), ATEN["amax"](g, input, dim, keepdim)


for _name in ("argmax", "argmin"):

    def _place(g: Emitter, input, dim=None, keepdim: bool = False, _name: str = _name) -> Any:
        shape = g.type(input).shape
        if dim is not None and shape:
            return indices(g, g.call(f"aten::{_name}", input, axis_of(g, input, dim), keepdim))
        place = g.call(f"aten::{_name}", reshaped(g, input, [math.prod(shape)]), 0, False)
        return indices(g, reshaped(g, place, [1] * len(shape)) if keepdim else place)

    ATEN[_name] = _place
