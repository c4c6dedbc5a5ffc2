"""Least squares: torch.linalg.lstsq."""

from __future__ import annotations

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.linalg.decompositions import is_of_vectors, nothing
from tmconvert.frontends.torch.adapters.values import reshaped
from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import full, numbers, part, spread, transposed

ATEN = Table()


@ATEN.add("linalg_lstsq")
def lstsq(g, input, b, rcond=None, *, driver=None):
    """Returns the minimum-norm X that minimizes |A X - B|; residuals, rank and singular values.

    ``gels`` assumes that A has full rank, ``gelsy`` determines the rank. Results that the driver does not
    compute are empty tensors, as in torch. Source: gels and gelsy of LAPACK.
    """
    if driver not in (None, "gels", "gelsy"):
        raise Refusal(
            (f"lstsq with driver {driver} returns singular values, which is not supported"),
            "use driver='gelsy'",
        )
    is_vector = is_of_vectors(g, input, b)
    A, B = Term(g, input), Term(g, reshaped(g, b, [*g.type(b).shape, 1]) if is_vector else b)
    batch = broadcast_shapes(A.type.shape[:-2], B.type.shape[:-2])
    A, B = spread(A, batch), spread(B, batch)
    found = _of_full_rank(A, B) if driver == "gels" else _of_any_rank(A, B, rcond)
    solution, residuals, rank = (term.value for term in found)
    shape = g.type(solution).shape
    return reshaped(g, solution, shape[:-1]) if is_vector else solution, residuals, rank, nothing(g, input)


def _of_full_rank(A: Term, B: Term) -> list[Term]:
    g, (*_, rows, columns) = A.g, A.type.shape
    no_rank = Term(g, g.constant(np.zeros(0), np.int64))
    if rows < columns:
        reflections, tau = _reflected(transposed(A))
        return [_smallest(reflections, tau, B), Term(g, nothing(g, A.value)), no_rank]
    reflections, tau = _reflected(A)
    products = _times(reflections, tau, B, transpose=True)
    solution = _solved(part(reflections, -2, columns), part(products, -2, columns), upper=True)
    if rows == columns:
        return [solution, Term(g, nothing(g, A.value)), no_rank]
    rest = products.slice(dim=-2, start=columns, end=rows)
    lengths = (rest * rest).sum(dim=[-2])
    return [solution, lengths if columns else lengths * 0, no_rank]  # torch: nothing of no columns


def _of_any_rank(A: Term, B: Term, rcond: float | None) -> list[Term]:
    """Solves rank-deficient systems by QR with column pivoting; small diagonal elements of R count as zero.

    A P = Q R, where the rows of R after its rank are taken to be 0. LAPACK estimates the condition of R as
    it finds the rank; here it is the ratio of the elements on its diagonal. torch leaves to chance from which
    column LAPACK begins, and loses columns of what is not of full rank; this is the solution that there is.
    """
    g, (*batch, rows, columns) = A.g, A.type.shape
    count = min(rows, columns)
    if rcond is None:
        rcond = float(np.finfo(A.dtype).eps) * max(rows, columns)
    factors, scales, order = (Term(g, each) for each in g.call("tm::geqp3", A.value))
    upper = part(factors, -2, count).triu()
    diagonal = Term(g, g.call("aten::diagonal", upper.value, 0, -2, -1)).abs()
    counts = diagonal > part(diagonal, -1, min(count, 1)) * rcond  # the first is the largest
    rank = counts.to(np.int64).sum(dim=[-1])
    counts = counts.reshape(shape=[*batch, count, 1])
    products = counts.where(part(_times(factors, scales, B, transpose=True), -2, count), 0)
    reflections, tau = _reflected(transposed(counts.where(upper, 0)))
    left_out = numbers(reflections, -2).eq(numbers(reflections, -1)) & ~transposed(counts)
    solution = _smallest(left_out.where(1, reflections), tau, products)  # 0 / 1 there
    places = numbers(solution, -2).eq(order.reshape(shape=[*batch, 1, columns])).to(A.dtype)
    return [places.matmul(solution), Term(g, nothing(g, A.value)), rank]


def _smallest(reflections: Term, tau: Term, B: Term) -> Term:
    """Returns the minimum-norm X of (Q R)^T X = B, which lies in the span of the columns of Q."""
    *batch, rows, count = reflections.type.shape
    inner = _solved(transposed(part(reflections, -2, count)), B, upper=False)
    rest = full(B.g, [*batch, rows - count, B.type.shape[-1]], 0, B.dtype)
    outer = inner if rows == count else Term(B.g, B.g.call("aten::cat", [inner.value, rest.value], -2))
    return _times(reflections, tau, outer, transpose=False)


def _reflected(x: Term) -> list[Term]:
    return [Term(x.g, each) for each in x.g.call("aten::geqrf", x.value)]


def _times(reflections: Term, tau: Term, x: Term, *, transpose: bool) -> Term:
    return Term(x.g, x.g.call("aten::ormqr", reflections.value, tau.value, x.value, True, transpose))


def _solved(triangle: Term, x: Term, *, upper: bool) -> Term:
    return Term(x.g, x.g.call("aten::linalg_solve_triangular", triangle.value, x.value, upper))
