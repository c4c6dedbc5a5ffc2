"""aten::linalg_solve_triangular, by substitution, and aten::linalg_cholesky_ex."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import full, line, numbers, repeated, spread, transposed
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean
from tmconvert.symbolics.ops.linalg.determinants import square_matrices

Array = np.ndarray
INT32 = np.dtype(np.int32)


def _solution(A: TensorType, B: TensorType, **attributes: bool) -> TensorType:
    rows = square_matrices(A).shape[-1]
    if A.dtype != B.dtype or B.rank < 2 or B.shape[-2 if attributes["left"] else -1] != rows:
        raise ValueError(f"{B} must have {rows} rows or columns, and the type of {A}")
    return TensorType(A.dtype, (*broadcast_shapes(A.shape[:-2], B.shape[:-2]), *B.shape[-2:]))


def _factor(x: TensorType, upper: bool) -> list[TensorType]:
    return [x, TensorType(INT32, square_matrices(x).shape[:-2])]


solve_triangular = Op(
    "aten::linalg_solve_triangular",
    args=[
        Tensor("A", FLOATS), Tensor("B", FLOATS), boolean("upper"), boolean("left", True),
        boolean("unitriangular", False),
    ],
    result=_solution,
)  # fmt: skip
cholesky_ex = Op(
    "aten::linalg_cholesky_ex", args=[Tensor("x", FLOATS), boolean("upper", False)], result=_factor
)
OPS = [solve_triangular, cholesky_ex]


@solve_triangular.reference
def solve_triangular_ref(A: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    """Solves A X = B, or X A = B, for one triangle of A; with a unit diagonal if ``unitriangular``."""
    if not left:
        flipped = (np.swapaxes(each, -1, -2) for each in (A, B))
        return np.swapaxes(solve_triangular_ref(*flipped, not upper, True, unitriangular), -1, -2)
    X = np.broadcast_to(B, (*np.broadcast_shapes(A.shape[:-2], B.shape[:-2]), *B.shape[-2:])).copy()
    rows = A.shape[-1]
    with np.errstate(all="ignore"):
        for k in range(rows)[:: -1 if upper else 1]:
            if not unitriangular:
                X[..., k, :] /= A[..., k, k, None]
            rest = slice(k) if upper else slice(k + 1, rows)
            X[..., rest, :] -= A[..., rest, k, None] * X[..., None, k, :]
    return X


@solve_triangular.decompose
def solve_triangular_rows(g, A, B, upper, left, unitriangular):
    batch = broadcast_shapes(g.type(A).shape[:-2], g.type(B).shape[:-2])
    matrix, values = Term(g, A), spread(Term(g, B), batch)
    if not left:
        matrix, values, upper = transposed(matrix), transposed(values), not upper
    rows = matrix.type.shape[-1]

    def substituted(k: Term, x: Term, matrix: Term) -> list[Term]:
        """Solves row ``k``, and eliminates it from the others; an upper triangle starts with the last row."""
        k = (rows - 1) - k if upper else k
        found, column = line(x, -2, k), line(matrix, -1, k)
        if not unitriangular:
            found = found / line(column, -2, k)
        number = numbers(x, -2)
        others = number < k if upper else number > k
        return [number.eq(k).where(found, others.where(x - column * found, x))]

    (found,) = repeated(g, rows, substituted, [values], [matrix])
    return (found if left else transposed(found)).value


@cholesky_ex.reference
def linalg_cholesky_ex_ref(x: Array, upper: bool) -> list[Array]:
    """The lower triangle L with L L^T = x, or its transpose, of the lower or upper triangle of ``x``.

    And 0, or the number of the first column that cannot be: what follows it is left as it was.
    Source: potrf of LAPACK.
    """
    lower = np.tril(np.swapaxes(x, -1, -2) if upper else x)
    info = np.zeros(x.shape[:-2], INT32)
    for place in np.ndindex(info.shape):
        one = lower[place]
        for k in range(len(one)):
            one[k, k] -= one[k, :k] @ one[k, :k]
            if not one[k, k] > 0:
                info[place] = k + 1
                break
            one[k, k] = np.sqrt(one[k, k])
            one[k + 1 :, k] = (one[k + 1 :, k] - one[k + 1 :, :k] @ one[k, :k]) / one[k, k]
    return [np.swapaxes(lower, -1, -2) if upper else lower, info]


@cholesky_ex.decompose
def linalg_cholesky_columns(g, x, upper):
    lower = transposed(Term(g, x)) if upper else Term(g, x)
    *batch, rows, _ = lower.type.shape
    given = lower.tril(diagonal=0)
    state = [given, full(g, [*batch, 1, 1], 0, INT32)]
    found, info = repeated(g, rows, _next_column, state)
    return [(transposed(found) if upper else found).value, info.reshape(shape=batch).value]


def _next_column(k: Term, x: Term, info: Term) -> list[Term]:
    """Computes column ``k`` from the columns before it."""
    rows, columns = numbers(x, -2), numbers(x, -1)
    before = (columns < k).where(line(x, -2, k), 0)
    column = line(x, -1, k) - x.matmul(transposed(before))
    square = line(column, -2, k)
    can_be = square > 0
    scaled = (rows < k).where(0, column / can_be.where(square, 1).sqrt())
    found = can_be.where(scaled, rows.eq(k).where(square, line(x, -1, k)))
    goes_on = info.eq(0)
    info = (goes_on & ~can_be).where(k + 1, info)
    return [(columns.eq(k) & goes_on).where(found, x), info]
