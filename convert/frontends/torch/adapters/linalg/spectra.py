"""Eigenvalues of symmetric matrices, singular values, and what follows from them.

Vectors are determined up to their signs, and those of equal values up to a rotation: what a model computes
should not depend on that. Both are other ones than those of torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.linalg import jacobi
from tmconvert.frontends.torch.adapters.linalg.decompositions import nothing
from tmconvert.frontends.torch.adapters.values import floating, is_tensor, kind_of
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import full, part, transposed, unit

ATEN = Table()


# ---- symmetric matrices


@ATEN.add("_linalg_eigh")
def eigh_or_values(g, A, UPLO="L", compute_v=True):
    values, vectors = jacobi.eigenvalues(_symmetric(g, A, UPLO))
    return values.value, vectors.value if compute_v else nothing(g, A)


ATEN.add("linalg_eigh")(lambda g, A, UPLO="L": eigh_or_values(g, A, UPLO))
ATEN.add("linalg_eigvalsh")(lambda g, A, UPLO="L": eigh_or_values(g, A, UPLO, False)[0])


def _symmetric(g: Emitter, A, triangle: str) -> Term:
    """Returns matrices whose other triangle is that of ``triangle``, the only one that torch reads."""
    x = _real(g, A)
    if triangle.upper() == "L":
        return x.tril() + transposed(x.tril(diagonal=-1))
    return x.triu() + transposed(x.triu(diagonal=1))


def _real(g: Emitter, A) -> Term:
    if kind_of(g.type(A).dtype) > 2:
        raise Refusal("eigenvalues and singular values of complex matrices are not supported")
    return Term(g, A)


# ---- singular values


@ATEN.add("_linalg_svd")
def svd_or_values(g, A, full_matrices=False, compute_uv=True, *, driver=None):
    """Returns U, S and V transposed; of ``A``, or of its transpose, where that has more rows."""
    x = _real(g, A)
    *_, rows, columns = x.type.shape
    is_wide = bool(rows < columns)
    products, values, right = jacobi.singular_values(transposed(x) if is_wide else x)
    if not compute_uv:
        return nothing(g, A), values.value, nothing(g, A)
    left = _orthonormal(products, full_matrices)
    if is_wide:
        left, right = right, left
    return left.value, values.value, transposed(right).value


ATEN.add("linalg_svd")(lambda g, A, full_matrices=True, *, driver=None: svd_or_values(g, A, full_matrices))


@ATEN.add("linalg_svdvals")
def svdvals(g, A, *, driver=None):
    return svd_or_values(g, A, False, False)[1]


@ATEN.add("svd")
def svd(g, input, some=True, compute_uv=True):
    """``torch.svd``: returns V itself; zeros for both U and V where they are not requested."""
    left, values, right = svd_or_values(g, input, not some, compute_uv)
    if compute_uv:
        return left, values, transposed(Term(g, right)).value
    *batch, rows, columns = g.type(input).shape
    zeros = (full(g, [*batch, size, size], 0, g.type(input).dtype).value for size in (rows, columns))
    return next(zeros), values, next(zeros)


def _orthonormal(products: Term, full_matrices: bool) -> Term:
    """Returns U of ``products`` = U S by Householder's reflections.

    These also complete U: by columns for singular values that are zero, and to a square.
    """
    g, (*batch, rows, columns) = products.g, products.type.shape
    if not columns:
        return unit(g, batch, rows, rows if full_matrices else 0, products.dtype)
    reflections, tau = (Term(g, each) for each in g.call("aten::geqrf", products.value))
    diagonal = jacobi.as_row(jacobi.diagonal(reflections))
    signs = 1 - (diagonal < 0).to(diagonal.dtype) * 2
    count = rows if full_matrices else columns
    if count > columns:
        ones = full(g, [*batch, 1, count - columns], 1, products.dtype)
        signs = Term(g, g.call("aten::cat", [signs.value, ones.value], -1))
    start = unit(g, batch, rows, count, products.dtype)
    vectors = g.call("aten::ormqr", reflections.value, tau.value, start.value, True, False)
    return Term(g, vectors) * signs


# ---- of singular values


@ATEN.add("linalg_pinv")
def pinv(g, A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """Pseudoinverse: singular values up to max(atol, rtol * the largest) count as zero."""
    x = _symmetric(g, A, "L") if hermitian else _real(g, A)
    *_, rows, columns = x.type.shape
    left, values, right = (Term(g, each) for each in svd_or_values(g, x.value))
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        default = float(np.finfo(x.dtype).eps) * max(rows, columns)
        if atol is None:
            rtol = default
        elif is_tensor(atol):
            rtol = (Term(g, atol) > 0).where(full(g, [], 0, x.dtype), default).value
        else:
            rtol = 0.0 if atol > 0 else default
    limit = _limit(g, rtol, x) * part(values, -1, min(rows, columns, 1))
    if atol is not None:
        limit = limit.call("maximum", _limit(g, atol, x))
    inverse = (values > limit).where(1 / (values > 0).where(values, 1), 0)
    return (transposed(right) * jacobi.as_row(inverse)).matmul(transposed(left)).value


ATEN.add("pinverse")(lambda g, input, rcond=1e-15: pinv(g, input, rcond))


def _limit(g: Emitter, given: Any, x: Term) -> Term:
    if not is_tensor(given):
        return full(g, [1], given, x.dtype)
    tolerance = Term(g, floating(g, given)).to(x.dtype)
    return tolerance.reshape(shape=[*tolerance.type.shape, 1])
