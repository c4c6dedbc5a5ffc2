"""Matrix decompositions (LU, QR, Cholesky, LDL) and linear solvers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.linalg.linear_algebra import matmul, transposed
from tmconvert.frontends.torch.adapters.values import axis_of, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import part, unit

ATEN = Table()


def nothing(g, x):
    """Returns the empty tensor that torch returns for a result that was not requested."""
    return g.constant(np.zeros(0), g.type(x).dtype)


ATEN.add("linalg_det", "det")(lambda g, A: g.call("aten::linalg_det", A))


@ATEN.add("linalg_slogdet", "slogdet")
def slogdet(g, A):
    return tuple(g.call("aten::linalg_slogdet", A))


@ATEN.add("logdet")
def logdet(g, A):
    sign, logarithm = (Term(g, part) for part in slogdet(g, A))
    return (sign < 0).where(math.nan, logarithm).value


# ---- P L U, by Gauss' elimination


@ATEN.add("linalg_lu_factor_ex")
def lu_factor_ex(g, A, *, pivot=True, check_errors=False):
    return tuple(g.call("aten::linalg_lu_factor_ex", A))


@ATEN.add("linalg_lu_factor")
def lu_factor(g, A, *, pivot=True):
    return lu_factor_ex(g, A)[:2]


@ATEN.add("lu_unpack")
def lu_unpack(g, LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    P, L, U = g.call("aten::lu_unpack", LU_data, LU_pivots)
    empty = nothing(g, LU_data)
    return (P if unpack_pivots else empty, *((L, U) if unpack_data else (empty, empty)))


ATEN.add("linalg_lu")(lambda g, A, *, pivot=True: lu_unpack(g, *lu_factor(g, A)))


@ATEN.add("linalg_lu_solve")
def lu_solve(g, LU, pivots, B, *, left=True, adjoint=False):
    """Solves A X = B, or X A = B if not ``left``; A is transposed if ``adjoint``."""
    if not left:
        return transposed(g, lu_solve(g, LU, pivots, transposed(g, B), adjoint=not adjoint))
    P = g.call("aten::lu_unpack", LU, pivots)[0]
    if adjoint:
        upper = solve_triangular(g, transposed(g, LU), B, upper=False)
        return matmul(g, P, solve_triangular(g, transposed(g, LU), upper, upper=True, unitriangular=True))
    lower = solve_triangular(g, LU, matmul(g, transposed(g, P), B), upper=False, unitriangular=True)
    return solve_triangular(g, LU, lower, upper=True)


ATEN.add("lu_solve")(lambda g, input, LU_data, LU_pivots: lu_solve(g, LU_data, LU_pivots, input))


@ATEN.add("linalg_solve_ex")
def solve_ex(g, A, B, *, left=True, check_errors=False):
    is_vector = is_of_vectors(g, A, B)
    LU, pivots, info = lu_factor_ex(g, A)
    B = reshaped(g, B, [*g.type(B).shape, 1]) if is_vector else B
    result = lu_solve(g, LU, pivots, B, left=left)
    return (reshaped(g, result, g.type(result).shape[:-1]) if is_vector else result), info


def is_of_vectors(g: Emitter, A, B) -> bool:
    return rank(g, B) == 1 or g.type(B).shape == g.type(A).shape[:-1]


@ATEN.add("linalg_solve")
def solve(g, A, B, *, left=True):
    return solve_ex(g, A, B, left=left)[0]


ATEN.add("linalg_inv", "inverse")(lambda g, A: g.call("aten::linalg_inv", A))


@ATEN.add("linalg_inv_ex")
def inv_ex(g, A, *, check_errors=False):
    *batch, rows, _ = g.type(A).shape
    return solve_ex(g, A, unit(g, batch, rows, rows, g.type(A).dtype).value)


@ATEN.add("linalg_tensorsolve")
def tensorsolve(g, A, B, dims=None):
    """Solves tensordot(A, X, X.ndim) = B for X; the axes ``dims`` of A are moved to the end first."""
    moved = [] if dims is None else [axis_of(g, A, axis) for axis in dims]
    A = g.call("aten::permute", A, [axis for axis in range(rank(g, A)) if axis not in moved] + moved)
    shape, count = g.type(A).shape, g.type(B).size
    result = solve(g, reshaped(g, A, [count, count]), reshaped(g, B, [count]))
    return reshaped(g, result, shape[rank(g, B) :])


# ---- triangles


@ATEN.add("linalg_solve_triangular")
def solve_triangular(g, A, B, *, upper, left=True, unitriangular=False):
    return g.call("aten::linalg_solve_triangular", A, B, upper, left, unitriangular)


@ATEN.add("triangular_solve")
def triangular_solve(g, input, A, upper=True, transpose=False, unitriangular=False):
    matrix, is_upper = (transposed(g, A), not upper) if transpose else (A, upper)
    return solve_triangular(g, matrix, input, upper=is_upper, unitriangular=unitriangular), A


@ATEN.add("linalg_cholesky_ex")
def cholesky_ex(g, A, *, upper=False, check_errors=False):
    return tuple(g.call("aten::linalg_cholesky_ex", A, upper))


ATEN.add("linalg_cholesky")(lambda g, A, *, upper=False: cholesky_ex(g, A, upper=upper)[0])
ATEN.add("cholesky")(lambda g, input, upper=False: cholesky_ex(g, input, upper=upper)[0])


@ATEN.add("cholesky_solve")
def cholesky_solve(g, input, input2, upper=False):
    """Solves F F^T X = ``input``, or F^T F X = ``input`` if F is upper triangular."""
    first, second = (transposed(g, input2), input2) if upper else (input2, transposed(g, input2))
    return solve_triangular(g, second, solve_triangular(g, first, input, upper=False), upper=True)


@ATEN.add("cholesky_inverse")
def cholesky_inverse(g, input, upper=False):
    *batch, rows, _ = g.type(input).shape
    return cholesky_solve(g, unit(g, batch, rows, rows, g.type(input).dtype).value, input, upper)


# ---- Q R, by reflections


@ATEN.add("geqrf")
def geqrf(g, input):
    return tuple(g.call("aten::geqrf", input))


@ATEN.add("ormqr")
def ormqr(g, input, input2, input3, left=True, transpose=False):
    return g.call("aten::ormqr", input, input2, input3, left, transpose)


@ATEN.add("linalg_householder_product", "orgqr")
def householder_product(g, input, tau):
    return _orthogonal(g, input, tau, g.type(input).shape[-1])


def _orthogonal(g: Emitter, reflections: Any, tau: Any, count: Any) -> Any:
    """Returns the first columns of Q."""
    *batch, rows, _ = g.type(reflections).shape
    return ormqr(g, reflections, tau, unit(g, batch, rows, count, g.type(tau).dtype).value)


@ATEN.add("linalg_qr")
def qr(g, A, mode="reduced"):
    reflections, tau = geqrf(g, A)
    rows, columns = g.type(A).shape[-2:]
    count = rows if mode == "complete" else min(rows, columns)
    R = part(Term(g, reflections), -2, count).triu().value
    return (nothing(g, A) if mode == "r" else _orthogonal(g, reflections, tau, count)), R


ATEN.add("qr")(lambda g, input, some=True: qr(g, input, "reduced" if some else "complete"))


# ---- L D L^T, of symmetric matrices


@ATEN.add("linalg_ldl_factor_ex")
def ldl_factor_ex(g, input, *, hermitian=False, check_errors=False):
    return tuple(g.call("aten::linalg_ldl_factor_ex", input))


ATEN.add("linalg_ldl_factor")(lambda g, input, *, hermitian=False: ldl_factor_ex(g, input)[:2])


@ATEN.add("linalg_ldl_solve")
def ldl_solve(g, LD, pivots, B, *, hermitian=False):
    return g.call("aten::linalg_ldl_solve", LD, pivots, B)
