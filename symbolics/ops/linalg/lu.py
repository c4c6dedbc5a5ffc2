"""LU decomposition: aten::linalg_lu_factor_ex and lu_unpack.

Matrices are P L U: L has ones on its diagonal, which is not stored, and P exchanges rows. ``pivots`` says
with which row each was exchanged in turn, counted from 1. Source: getrf of LAPACK.
"""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import (
    exchanged,
    full,
    line,
    numbers,
    part,
    repeated,
    spread,
    transposed,
    unit,
)
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.ops.linalg.determinants import matrices
from tmconvert.symbolics.traits import Elimination

Array = np.ndarray
INT32 = np.dtype(np.int32)


def _factors(A: TensorType) -> list[TensorType]:
    *batch, rows, columns = matrices(A).shape
    return [A, TensorType(INT32, (*batch, min(rows, columns))), TensorType(INT32, tuple(batch))]


def _unpacked(LU_data: TensorType, LU_pivots: TensorType) -> list[TensorType]:
    *batch, rows, columns = matrices(LU_data).shape
    steps = min(rows, columns)
    if LU_pivots.shape != (*batch, steps):
        raise ValueError(f"{LU_pivots} are not valid pivots for {LU_data}")
    shapes = [(rows, rows), (rows, steps), (steps, columns)]
    return [TensorType(LU_data.dtype, (*batch, *shape)) for shape in shapes]


lu_factor_ex = Op(
    "aten::linalg_lu_factor_ex", args=[Tensor("A", FLOATS)], result=_factors, traits=[Elimination()]
)
lu_unpack = Op(
    "aten::lu_unpack", args=[Tensor("LU_data", FLOATS), Tensor("LU_pivots", ("int32",))], result=_unpacked
)
OPS = [lu_factor_ex, lu_unpack]


@lu_factor_ex.reference
def lu_factor_ex_ref(A: Array) -> list[Array]:
    """Returns L and U in one matrix, the pivots, and the index of the first zero pivot, or 0."""
    x, steps = A.copy(), min(A.shape[-2:])
    pivots, info = np.zeros((*A.shape[:-2], steps), INT32), np.zeros(A.shape[:-2], INT32)
    for place in np.ndindex(A.shape[:-2]):
        one = x[place]
        for k in range(steps):
            row = k + int(np.argmax(np.abs(one[k:, k])))
            one[[k, row]] = one[[row, k]]
            pivots[place][k] = row + 1
            if one[k, k] == 0:
                info[place] = info[place] or k + 1
                continue
            one[k + 1 :, k] /= one[k, k]
            one[k + 1 :, k + 1 :] -= np.outer(one[k + 1 :, k], one[k, k + 1 :])
    return [x, pivots, info]


@lu_factor_ex.decompose
def lu_factor_ex_columns(g, A):
    x = Term(g, A)
    *batch, rows, columns = x.type.shape
    steps = min(rows, columns)
    state = [x, full(g, [*batch, 1, steps], 0, INT32), full(g, [*batch, 1, 1], 0, INT32)]
    factors, pivots, info = repeated(g, steps, _eliminated, state)
    return [factors.value, pivots.reshape(shape=[*batch, steps]).value, info.reshape(shape=batch).value]


def _eliminated(k: Term, x: Term, pivots: Term, info: Term) -> list[Term]:
    """Eliminates one column: the row with the largest remaining element is moved to row ``k``."""
    rows, columns = numbers(x, -2), numbers(x, -1)
    size = (rows < k).where(-1, line(x, -1, k).abs())
    found = size.argmax(dim=-2, keepdim=True)
    x = exchanged(x, -2, k, found)
    row = line(x, -2, k)
    pivot = line(row, -1, k)
    is_zero = pivot.eq(0)
    factors = (rows > k).where(line(x, -1, k) / is_zero.where(1, pivot), 0)
    x = (columns > k).where(x - factors * row, (columns.eq(k) & (rows > k)).where(factors, x))
    pivots = numbers(pivots, -1).eq(k).where(found + 1, pivots)
    return [x, pivots, (info.eq(0) & is_zero).where(k + 1, info)]


@lu_unpack.reference
def lu_unpack_ref(LU_data: Array, LU_pivots: Array) -> list[Array]:
    """Returns P, L and U."""
    steps = min(LU_data.shape[-2:])
    lower = np.tril(LU_data[..., :steps], -1) + np.eye(LU_data.shape[-2], steps, dtype=LU_data.dtype)
    exchanged = np.zeros((*LU_data.shape[:-1], LU_data.shape[-2]), LU_data.dtype)
    for place in np.ndindex(LU_data.shape[:-2]):
        order = np.arange(LU_data.shape[-2])
        for k, pivot in enumerate(LU_pivots[place]):
            order[[k, pivot - 1]] = order[[pivot - 1, k]]
        exchanged[place][order, np.arange(len(order))] = 1
    return [exchanged, lower, np.triu(LU_data[..., :steps, :])]


@lu_unpack.decompose
def lu_unpack_parts(g, LU_data, LU_pivots):
    x = Term(g, LU_data)
    *batch, rows, columns = x.type.shape
    steps = min(rows, columns)
    ones = unit(g, batch, rows, steps, x.dtype)
    lower = part(x, -1, steps).tril(diagonal=-1) + ones
    return [
        _exchanges(Term(g, LU_pivots), rows).to(x.dtype).value,
        lower.value,
        part(x, -2, steps).triu().value,
    ]


def _exchanges(pivots: Term, rows: int) -> Term:
    """Returns P as bools: the original row of each row, tracked through the exchanges."""
    g, (*batch, steps) = pivots.g, pivots.type.shape
    first = spread(numbers(unit(g, [], rows, 1, INT32), -2).reshape(shape=[1, rows]), batch)
    places = pivots.reshape(shape=[*batch, 1, steps]) - 1

    def found(k: Term, order: Term, places: Term) -> list[Term]:
        return [exchanged(order, -1, k, line(places, -1, k))]

    (order,) = repeated(g, steps, found, [first], [places])
    return numbers(transposed(order), -2).eq(order)
