"""aten::linalg_vector_norm over axes, and aten::cdist, pairwise distances of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integers, number
from tmconvert.symbolics.ops.reductions.reduce import reduced_axes, reduced_type

Array = np.ndarray


def _result(x: TensorType, ord: float, dim: list[int] | None, keepdim: bool) -> TensorType:
    return reduced_type(x, dim, keepdim)


vector_norm = Op(
    "aten::linalg_vector_norm",
    args=[Tensor("x", FLOATS), number("ord", 2), integers("dim", None), boolean("keepdim", False)],
    result=_result,
)


@vector_norm.reference
def linalg_vector_norm_ref(x: Array, ord: float, dim: list[int] | None, keepdim: bool) -> Array:
    """(sum |x| ^ ord) ^ (1 / ord); for 0 the number of non-zeros, for inf and -inf the extremes of |x|."""
    axes = tuple(reduced_axes(x.ndim, dim))
    if ord == 0:
        return (x != 0).sum(axes, keepdims=keepdim).astype(x.dtype)
    if math.isinf(ord):
        return (np.max if ord > 0 else np.min)(np.abs(x), axis=axes, keepdims=keepdim)
    powers = np.abs(x) ** np.array(ord, x.dtype)
    return powers.sum(axes, keepdims=keepdim) ** np.array(1 / ord, x.dtype)


@vector_norm.decompose
def linalg_vector_norm_power(g, x, ord, dim, keepdim):
    dtype = g.type(x).dtype
    if ord == 0:
        count = g.call("aten::to", g.call("aten::to", x, dtype="bool"), dtype=dtype.name)
        return g.call("aten::sum", count, dim, keepdim)
    if ord == 2:
        return g.call("aten::sqrt", g.call("aten::sum", g.call("aten::square", x), dim, keepdim))
    size = g.call("aten::abs", x)
    if math.isinf(ord):
        return g.call("aten::amax" if ord > 0 else "aten::amin", size, dim, keepdim)
    if ord == 1:
        return g.call("aten::sum", size, dim, keepdim)
    total = g.call("aten::sum", g.call("aten::pow", size, g.constant(ord, dtype)), dim, keepdim)
    return g.call("aten::pow", total, g.constant(1 / ord, dtype))


def _distances(x: TensorType, x2: TensorType, p: float) -> TensorType:
    if x.rank < 2 or x2.rank < 2 or x.shape[-1] != x2.shape[-1] or x.dtype != x2.dtype:
        raise ValueError(f"{x} and {x2} do not have points of the same dimension")
    batch = broadcast_shapes(x.shape[:-2], x2.shape[:-2])
    return TensorType(x.dtype, (*batch, x.shape[-2], x2.shape[-2]))


cdist = Op("aten::cdist", args=[Tensor("x", FLOATS), Tensor("x2", FLOATS), number("p", 2)], result=_distances)


@cdist.reference
def cdist_ref(x: Array, x2: Array, p: float) -> Array:
    return linalg_vector_norm_ref(x[..., :, np.newaxis, :] - x2[..., np.newaxis, :, :], p, [-1], False)


@cdist.decompose
def cdist_norm(g, x, x2, p):
    def spread(points: Any, axis: int) -> Any:
        shape = list(g.type(points).shape)
        return g.call("aten::reshape", points, [*shape[:axis], 1, *shape[axis:]])

    difference = g.call("aten::sub", spread(x, -1), spread(x2, -2))
    return g.call("aten::linalg_vector_norm", difference, p, [-1])


OPS = [vector_norm, cdist]
