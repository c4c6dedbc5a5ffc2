"""megengine.functional.math: reductions and norms, and the reductions of Tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.functions.elemwise import clip
from tmconvert.frontends.megengine.adapters.values import (
    axes_of,
    axis_of,
    cast,
    floating,
    is_tensor,
    rank,
    reshaped,
)
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.math.")
METHODS = Table()

# name in MegEngine -> aten op, and the one for bools
REDUCTIONS = {
    "mean": ("mean", "mean"),
    "sum": ("sum", "sum"),
    "prod": ("prod", "prod"),
    "max": ("amax", "any"),
    "min": ("amin", "all"),
}


def _is_empty(axis) -> bool:
    """MegEngine reduces over the axes of a list one by one: over none of them nothing changes."""
    return isinstance(axis, (list, tuple)) and not axis


def _axes(g: Emitter, inp, axis) -> list[int]:
    """Returns the axes to reduce: None means all; a scalar has none."""
    return axes_of(g, inp, axis) if rank(g, inp) else []


def reduction(name: str) -> Callable[..., Any]:
    """An adapter of one tensor, axes and ``keepdims``."""
    op, of_bools = REDUCTIONS[name]

    def adapter(g: Emitter, inp, axis=None, keepdims: bool = False) -> Any:
        if _is_empty(axis):
            return inp
        is_bool = g.type(inp).dtype.kind == "b"
        if name == "mean":  # of float16, too
            inp = cast(g, inp, np.float32)
        elif is_bool and name in ("sum", "prod"):
            inp = cast(g, inp, np.int32)
        return g.call(f"aten::{of_bools if is_bool else op}", inp, _axes(g, inp, axis), bool(keepdims))

    return adapter


def _arg_reduction(op: str) -> Callable[..., Any]:
    def adapter(g: Emitter, inp, axis=None, keepdims: bool = False) -> Any:
        if axis is None:
            return g.call(f"aten::{op}", reshaped(g, inp, [-1]), 0, False)
        if not isinstance(axis, (list, tuple)):
            return g.call(f"aten::{op}", inp, axis_of(g, inp, axis), bool(keepdims))
        for each in reversed(axes_of(g, inp, axis)):  # those behind the first search among indices
            inp = g.call(f"aten::{op}", inp, each, bool(keepdims))
        return inp

    return adapter


for _name in REDUCTIONS:
    METHODS.add(_name)(FUNCTIONS.add(_name)(reduction(_name)))
for _name in ("argmax", "argmin"):
    FUNCTIONS.add(_name)(_arg_reduction(_name))


@FUNCTIONS.add("var")
def var(g, inp, axis=None, keepdims=False):
    """The mean of the squared deviations from the mean: divided by the number of elements."""
    mean = reduction("mean")
    deviation = modes.applied(g, "SUB", inp, mean(g, inp, axis, axis is not None))
    return mean(g, g.call("aten::square", floating(g, deviation)), axis, keepdims)


@FUNCTIONS.add("std")
def std(g, inp, axis=None, keepdims=False):
    return g.call("aten::sqrt", var(g, inp, axis, keepdims))


@FUNCTIONS.add("norm")
def norm(g, inp, ord=None, axis=None, keepdims=False):
    """Infinite orders are the extremes of the whole tensor, whatever the axis."""
    if axis is None and rank(g, inp) != 1:
        raise Refusal("the norm of a tensor of rank other than 1 needs an axis")
    order = 2 if ord is None else ord
    if is_tensor(order) or not isinstance(order, (int, float)):
        raise Refusal(f"the order of a norm must be a number, not {order!r}")
    if order == 0:
        return reduction("sum")(g, cast(g, inp, bool), axis, keepdims)
    if math.isinf(order):
        return g.call("aten::amax" if order > 0 else "aten::amin", g.call("aten::abs", inp))
    axes = _axes(g, inp, axis)
    return g.call("aten::linalg_vector_norm", floating(g, inp), order, axes, bool(keepdims))


@FUNCTIONS.add("normalize")
def normalize(g, inp, ord=None, axis=None, eps=1e-12):
    length = norm(g, inp, ord, axis, keepdims=axis is not None)
    return modes.applied(g, "TRUE_DIV", inp, clip(g, length, lower=float(eps)))
