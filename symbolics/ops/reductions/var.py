"""aten::var, aten::std, aten::var_mean and aten::std_mean.

The sum of squared deviations from the mean is divided by the number of elements less ``correction``.
Without ``dim``, or with an empty one, over all axes. Source: torch.var.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.clamps import maximum
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integers, number
from tmconvert.symbolics.ops.reductions.reduce import reduced_axes, reduced_type

Array = np.ndarray
Axes = list[int] | None

ARGS = (Tensor("x", FLOATS), integers("dim", None), number("correction", 1), boolean("keepdim", False))


def _one(x: TensorType, dim: Axes, correction: float, keepdim: bool) -> TensorType:
    return reduced_type(x, dim, keepdim)


def _two(x: TensorType, dim: Axes, correction: float, keepdim: bool) -> list[TensorType]:
    return [reduced_type(x, dim, keepdim)] * 2


var, std = (Op(f"aten::{name}", args=ARGS, result=_one) for name in ("var", "std"))
var_mean, std_mean = (Op(f"aten::{name}", args=ARGS, result=_two) for name in ("var_mean", "std_mean"))
OPS = [var, std, var_mean, std_mean]


@var.reference
def var_ref(x: Array, dim: Axes, correction: float, keepdim: bool) -> Array:
    axes = tuple(reduced_axes(x.ndim, dim))
    count = math.prod(x.shape[axis] for axis in axes)
    squares = np.square(x - x.mean(axes, keepdims=True)).sum(axes, keepdims=keepdim)
    return np.asarray(squares / np.array(max(count - correction, 0), x.dtype), x.dtype)


std.reference(lambda x, dim, correction, keepdim: np.sqrt(var_ref(x, dim, correction, keepdim)))


@var_mean.reference
def var_mean_ref(x: Array, dim: Axes, correction: float, keepdim: bool) -> list[Array]:
    mean = x.mean(tuple(reduced_axes(x.ndim, dim)), keepdims=keepdim)
    return [var_ref(x, dim, correction, keepdim), mean]


@std_mean.reference
def std_mean_ref(x: Array, dim: Axes, correction: float, keepdim: bool) -> list[Array]:
    variance, mean = var_mean_ref(x, dim, correction, keepdim)
    return [np.sqrt(variance), mean]


def _spread(g: Any, x: Any, dim: Axes, correction: float, keepdim: bool) -> tuple[Any, Any]:
    """Returns the variance, and the mean with all axes kept."""
    type_ = g.type(x)
    mean = g.call("aten::mean", x, dim, True)
    squares = g.call("aten::square", g.call("aten::sub", x, mean))
    if correction == 0:
        return g.call("aten::mean", squares, dim, keepdim), mean
    count = math.prod(type_.shape[axis] for axis in reduced_axes(type_.rank, dim))
    total = g.call("aten::sum", squares, dim, keepdim)
    least = maximum(count - int(correction), 0) if isinstance(count, Dim) else max(count - correction, 0)
    return g.call("aten::div", total, g.constant(least, type_.dtype)), mean


var.decompose(lambda g, x, dim, correction, keepdim: _spread(g, x, dim, correction, keepdim)[0])


@std.decompose
def std_root(g, x, dim, correction, keepdim):
    return g.call("aten::sqrt", _spread(g, x, dim, correction, keepdim)[0])


@var_mean.decompose
def var_mean_squares(g, x, dim, correction, keepdim):
    variance, mean = _spread(g, x, dim, correction, keepdim)
    return [variance, mean if keepdim else g.call("aten::reshape", mean, list(g.type(variance).shape))]


@std_mean.decompose
def std_mean_root(g, x, dim, correction, keepdim):
    variance, mean = var_mean_squares(g, x, dim, correction, keepdim)
    return [g.call("aten::sqrt", variance), mean]
