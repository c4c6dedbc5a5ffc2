"""aten::linalg_det, linalg_slogdet and linalg_inv of square matrices; linalg_cross of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import numbers, transposed
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor, integer
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.traits import Elimination

Array = np.ndarray


def matrices(x: TensorType) -> TensorType:
    if x.rank < 2:
        raise ValueError(f"{x} is not a matrix")
    return x


def square_matrices(x: TensorType) -> TensorType:
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{x} does not have square matrices in its last two axes")
    return x


def _numbers(x: TensorType) -> TensorType:
    return TensorType(x.dtype, square_matrices(x).shape[:-2])


det = Op("aten::linalg_det", args=[Tensor("x", FLOATS)], result=_numbers, traits=[Elimination()])
slogdet = Op(
    "aten::linalg_slogdet",
    args=[Tensor("A", FLOATS)],
    result=lambda A: [_numbers(A)] * 2,
    traits=[Elimination()],
)
inv = Op("aten::linalg_inv", args=[Tensor("x", FLOATS)], result=square_matrices, traits=[Elimination()])


det.reference(lambda x: np.linalg.det(x.astype(np.float64)).astype(x.dtype))


@slogdet.reference
def linalg_slogdet_ref(A: Array) -> list[Array]:
    """Returns the sign and the logarithm of the absolute value of the determinant."""
    return [np.asarray(part).astype(A.dtype) for part in np.linalg.slogdet(A.astype(np.float64))]


@inv.reference
def linalg_inv_ref(x: Array) -> Array:
    """Not a number where a matrix has no inverse."""
    try:
        return np.linalg.inv(x.astype(np.float64)).astype(x.dtype)
    except np.linalg.LinAlgError:
        return np.full_like(x, np.nan)


det.onnx(since=11)(lambda g, x: g.op("Det", x, shape=x.shape[:-2]))


def _pivots(g: Any, x: Any) -> tuple[Term, Term]:
    """Returns the diagonal of U, and the sign of the row permutation."""
    factors, pivots, _ = g.call("aten::linalg_lu_factor_ex", x)
    diagonal = Term(g, g.call("aten::diagonal", factors, 0, -2, -1))
    stays = Term(g, pivots).eq(numbers(diagonal, -1) + 1)
    return diagonal, stays.where(1, -diagonal.like(1)).prod(dim=[-1])


@det.decompose
def linalg_det_product(g, x):
    diagonal, sign = _pivots(g, x)
    return (sign * diagonal.prod(dim=[-1])).value


@slogdet.decompose
def linalg_slogdet_sum(g, A):
    diagonal, sign = _pivots(g, A)
    return [(sign * diagonal.sign().prod(dim=[-1])).value, diagonal.abs().log().sum(dim=[-1]).value]


@inv.decompose
def linalg_inv_lu(g, x):
    """P L U X = I."""
    factors, pivots, _ = g.call("aten::linalg_lu_factor_ex", x)
    exchanges = Term(g, g.call("aten::lu_unpack", factors, pivots)[0])
    inner = g.call("aten::linalg_solve_triangular", factors, transposed(exchanges).value, False, True, True)
    return g.call("aten::linalg_solve_triangular", factors, inner, True)


def _crossed(x: TensorType, other: TensorType, dim: int) -> TensorType:
    shape = broadcast_shapes(x.shape, other.shape)
    axis = normalized_axis(dim, len(shape)) - len(shape)
    if x.dtype != other.dtype or x.shape[axis] != 3 or other.shape[axis] != 3:
        raise ValueError(f"axis {dim} of {x} and {other} does not hold vectors of three elements")
    return TensorType(x.dtype, shape)


cross = Op(
    "aten::linalg_cross",
    args=[Tensor("x", NUMBERS), Tensor("other", NUMBERS), integer("dim", -1)],
    result=_crossed,
)

cross.reference(lambda x, other, dim: np.cross(x, other, axis=dim))


@cross.decompose
def linalg_cross_products(g, x, other, dim):
    """x [1 2 0] times other [2 0 1], less x [2 0 1] times other [1 2 0]."""
    rank = max(g.type(x).rank, g.type(other).rank)
    axis = dim % rank - rank

    def rolled(value: Any, first: int) -> Any:
        """The elements first, first + 1 and first + 2, counted round."""
        where = axis + g.type(value).rank
        parts = [g.call("aten::slice", value, where, *bounds, 1) for bounds in ((first, 3), (0, first))]
        return g.call("aten::cat", parts, where)

    forward = g.call("aten::mul", rolled(x, 1), rolled(other, 2))
    return g.call("aten::sub", forward, g.call("aten::mul", rolled(x, 2), rolled(other, 1)))


OPS = [det, slogdet, inv, cross]
