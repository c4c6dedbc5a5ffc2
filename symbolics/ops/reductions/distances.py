"""Distances of vectors: aten::cosine_similarity, pairwise_distance, pdist, and aten::renorm."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import pairs
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integer, number
from tmconvert.symbolics.ops.reductions.reduce import reduced_type
from tmconvert.symbolics.ops.reductions.vector_norm import linalg_vector_norm_ref
from tmconvert.symbolics.results import normalized_axis

Array = np.ndarray


def _broadcast(x1: TensorType, x2: TensorType) -> TensorType:
    if x1.dtype != x2.dtype:
        raise TypeError(f"different dtypes: {x1}, {x2}")
    return TensorType(x1.dtype, broadcast_shapes(x1.shape, x2.shape))


def _cosines(x1: TensorType, x2: TensorType, dim: int, eps: float) -> TensorType:
    return reduced_type(_broadcast(x1, x2), [dim], False)


cosine_similarity = Op(
    "aten::cosine_similarity",
    args=[Tensor("x1", FLOATS), Tensor("x2", FLOATS), integer("dim", 1), number("eps", 1e-8)],
    result=_cosines,
)


@cosine_similarity.reference
def cosine_similarity_ref(x1: Array, x2: Array, dim: int, eps: float) -> Array:
    """Dot product of both vectors, each divided by its norm, at least eps."""
    first, second = np.broadcast_arrays(x1, x2)
    lengths = [
        np.maximum(linalg_vector_norm_ref(x, 2, [dim], True), np.array(eps, x.dtype)) for x in (first, second)
    ]
    return (first / lengths[0] * (second / lengths[1])).sum(dim)


@cosine_similarity.decompose
def cosine_similarity_product(g, x1, x2, dim, eps):
    whole = list(broadcast_shapes(g.type(x1).shape, g.type(x2).shape))
    axis = dim % len(whole) - len(whole)
    units = []
    for x in (x1, x2):
        shape = g.type(x).shape
        if len(shape) < -axis or shape[axis] != whole[axis]:  # an element stands for the whole vector
            x = g.call("aten::expand", x, whole)
        length = Term(g, x).linalg_vector_norm(ord=2, dim=[axis], keepdim=True)
        units.append(Term(g, x) / length.maximum(eps))
    return (units[0] * units[1]).sum(dim=[axis]).value


def _pairwise(x1: TensorType, x2: TensorType, p: float, eps: float, keepdim: bool) -> TensorType:
    return reduced_type(_broadcast(x1, x2), [-1], keepdim)


pairwise_distance = Op(
    "aten::pairwise_distance",
    args=[
        Tensor("x1", FLOATS), Tensor("x2", FLOATS), number("p", 2), number("eps", 1e-6),
        boolean("keepdim", False),
    ],
    result=_pairwise,
)  # fmt: skip


@pairwise_distance.reference
def pairwise_distance_ref(x1: Array, x2: Array, p: float, eps: float, keepdim: bool) -> Array:
    return linalg_vector_norm_ref(x1 - x2 + np.array(eps, x1.dtype), p, [-1], keepdim)


@pairwise_distance.decompose
def pairwise_distance_norm(g, x1, x2, p, eps, keepdim):
    difference = Term(g, x1) - Term(g, x2) + eps
    return difference.linalg_vector_norm(ord=p, dim=[-1], keepdim=keepdim).value


def _condensed(x: TensorType, p: float) -> TensorType:
    if x.rank != 2:
        raise ValueError(f"pdist expects a matrix of points, got {x}")
    return TensorType(x.dtype, (x.shape[0] * (x.shape[0] - 1) // 2,))


pdist = Op("aten::pdist", args=[Tensor("x", FLOATS), number("p", 2)], result=_condensed)


@pdist.reference
def pdist_ref(x: Array, p: float) -> Array:
    """Distances of rows 0 and 1, 0 and 2, ..., 1 and 2, ..."""
    first, second = np.triu_indices(len(x), 1)
    return linalg_vector_norm_ref(x[first] - x[second], p, [-1], False)


@pdist.decompose
def pdist_norm(g, x, p):
    chosen = pairs(g, g.type(x).shape[0], 1)
    first, second = (Term(g, g.call("aten::index_select", x, 0, part)) for part in chosen)
    return (first - second).linalg_vector_norm(ord=p, dim=[-1]).value


def _limited(x: TensorType, p: float, dim: int, maxnorm: float) -> TensorType:
    normalized_axis(dim, x.rank)
    if x.rank < 2 or p <= 0 or maxnorm < 0:
        raise ValueError(f"renorm of {x} with p={p} and maxnorm={maxnorm} is not valid")
    return x


renorm = Op(
    "aten::renorm",
    args=[Tensor("x", FLOATS), number("p"), integer("dim"), number("maxnorm")],
    result=_limited,
)
SMALL = 1e-7  # ATen adds it to the norm


def _others(rank: int, dim: int) -> list[int]:
    return [axis for axis in range(rank) if axis != dim % rank]


@renorm.reference
def renorm_ref(x: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Scales slices along ``dim`` whose norm exceeds the maximum down to it."""
    norm = linalg_vector_norm_ref(x, p, _others(x.ndim, dim), True)
    return np.where(norm > maxnorm, x * (maxnorm / (norm + np.array(SMALL, x.dtype))), x).astype(x.dtype)


@renorm.decompose
def renorm_scaled(g, x, p, dim, maxnorm):
    source = Term(g, x)
    norm = source.linalg_vector_norm(ord=p, dim=_others(g.type(x).rank, dim), keepdim=True)
    return (source * (norm > maxnorm).where(maxnorm / (norm + SMALL), norm.like(1))).value


OPS = [cosine_similarity, pairwise_distance, pdist, renorm]
