"""QR decomposition by Householder reflections: aten::geqrf, tm::geqp3 and aten::ormqr.

Q is the product of the reflections I - tau v v^T. Of v, the elements before number k are 0, that one is 1;
the others stand in column k, below R. Source: geqrf, geqp3 and ormqr of LAPACK.
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
    repeated,
    spread,
    total,
    transposed,
)
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean
from tmconvert.symbolics.ops.linalg.determinants import matrices

Array = np.ndarray
INT32 = np.dtype(np.int32)


def _factors(x: TensorType) -> list[TensorType]:
    *batch, rows, columns = matrices(x).shape
    return [x, TensorType(x.dtype, (*batch, min(rows, columns)))]


def _pivoted(x: TensorType) -> list[TensorType]:
    return [*_factors(x), TensorType(INT32, (*x.shape[:-2], x.shape[-1]))]


def _product(x: TensorType, tau: TensorType, other: TensorType, left: bool, transpose: bool) -> TensorType:
    *batch, rows, columns = matrices(x).shape
    if tau.shape[:-1] != tuple(batch) or tau.shape[-1] > columns or {x.dtype} != {tau.dtype, other.dtype}:
        raise ValueError(f"{tau} does not fit the reflections of {x}")
    if other.shape[:-2] != tuple(batch) or other.shape[-2 if left else -1] != rows:
        raise ValueError(f"{other} must have {rows} rows or columns, and the batch of {x}")
    return other


geqrf = Op("aten::geqrf", args=[Tensor("x", FLOATS)], result=_factors)
geqp3 = Op("tm::geqp3", args=[Tensor("x", ("float32", "float64"))], result=_pivoted)
ormqr = Op(
    "aten::ormqr",
    args=[
        Tensor("x", FLOATS), Tensor("tau", FLOATS), Tensor("other", FLOATS), boolean("left", True),
        boolean("transpose", False),
    ],
    result=_product,
)  # fmt: skip
OPS = [geqrf, geqp3, ormqr]


def _taken_apart(x: Array, *, pivoted: bool) -> list[Array]:
    x, steps = x.copy(), min(x.shape[-2:])
    tau = np.zeros((*x.shape[:-2], steps), x.dtype)
    order = np.broadcast_to(np.arange(x.shape[-1], dtype=INT32), (*x.shape[:-2], x.shape[-1])).copy()
    for place in np.ndindex(x.shape[:-2]):
        one, places = x[place], order[place]
        for k in range(steps):
            if pivoted:
                best = k + int(np.argmax(np.linalg.norm(one[k:, k:].astype(np.float64), axis=0)))
                one[:, [k, best]], places[[k, best]] = one[:, [best, k]], places[[best, k]]
            if not one[k + 1 :, k].any():
                continue
            alpha, norm = one[k, k], np.linalg.norm(one[k:, k].astype(np.float64))
            beta = (norm if alpha < 0 else -norm).astype(x.dtype)
            tau[place][k] = (beta - alpha) / beta
            v = one[k:, k] / (alpha - beta)
            v[0] = 1
            one[k:, k + 1 :] -= tau[place][k] * np.outer(v, v @ one[k:, k + 1 :])
            one[k, k], one[k + 1 :, k] = beta, v[1:]
    return [x, tau, order]


@geqrf.reference
def geqrf_ref(x: Array) -> list[Array]:
    """Returns R with the vectors below the diagonal, and tau."""
    return _taken_apart(x, pivoted=False)[:2]


@geqp3.reference
def geqp3_ref(x: Array) -> list[Array]:
    """The same with column pivoting by norm; returns also the permutation."""
    return _taken_apart(x, pivoted=True)


@geqrf.decompose
def geqrf_columns(g, x):
    matrix = Term(g, x)
    *batch, rows, columns = matrix.type.shape
    steps = min(rows, columns)
    state = [matrix, full(g, [*batch, 1, steps], 0, matrix.dtype)]
    factors, tau = repeated(g, steps, _reflected, state)
    return [factors.value, tau.reshape(shape=[*batch, steps]).value]


@geqp3.decompose
def geqp3_columns(g, x):
    matrix = Term(g, x)
    *batch, rows, columns = matrix.type.shape
    steps = min(rows, columns)
    order = spread(numbers(matrix, -1).reshape(shape=[1, columns]), batch)
    state = [matrix, full(g, [*batch, 1, steps], 0, matrix.dtype), order]
    factors, tau, order = repeated(g, steps, _longest_reflected, state)
    shapes = ([*batch, steps], [*batch, columns])
    flat = (each.reshape(shape=shape).value for each, shape in zip((tau, order), shapes, strict=True))
    return [factors.value, *flat]


def _longest_reflected(k: Term, x: Term, tau: Term, order: Term) -> list[Term]:
    rows, columns = numbers(x, -2), numbers(x, -1)
    left = (rows < k).where(0, x)
    longest = left.abs().amax(dim=[-2, -1], keepdim=True)
    lengths = total((left / longest.eq(0).where(1, longest)) ** 2, -2)
    found = (columns < k).where(-1, lengths).argmax(dim=-1, keepdim=True)
    return [*_reflected(k, exchanged(x, -1, k, found), tau), exchanged(order, -1, k, found)]


def _reflected(k: Term, x: Term, tau: Term) -> list[Term]:
    """Reflects column ``k`` to (beta, 0, ...) from row k on; beta has the other sign than the element."""
    rows, columns = numbers(x, -2), numbers(x, -1)
    column = line(x, -1, k)
    alpha, below = line(column, -2, k), (rows > k).where(column, 0)
    stays = below.abs().amax(dim=[-2], keepdim=True).eq(0)
    rest = (rows < k).where(0, column)
    largest = rest.abs().amax(dim=[-2], keepdim=True)
    scale = largest.eq(0).where(1, largest)  # squares of large and small numbers would leave the type
    norm = total((rest / scale) ** 2, -2).sqrt() * scale
    beta = stays.where(alpha, (alpha < 0).where(norm, -norm))
    factor = stays.where(0, (beta - alpha) / stays.where(1, beta))
    v = rows.eq(k).where(1, below / stays.where(1, alpha - beta))
    kept = (rows > k).where(v, rows.eq(k).where(beta, x))
    x = (columns > k).where(_mirrored(x, v, factor), columns.eq(k).where(kept, x))
    return [x, numbers(tau, -1).eq(k).where(factor, tau)]


def _mirrored(x: Term, v: Term, factor: Term) -> Term:
    return x - v * (factor * transposed(v).matmul(x))


@ormqr.reference
def ormqr_ref(x: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    """Returns Q, or its transpose, times ``other``, or ``other`` times that if not ``left``."""
    if not left:
        return np.swapaxes(ormqr_ref(x, tau, np.swapaxes(other, -1, -2), True, not transpose), -1, -2)
    result, count = other.copy(), tau.shape[-1]
    for k in range(count)[:: 1 if transpose else -1]:
        v = x[..., k, None] * (np.arange(x.shape[-2]) > k)[:, None] + (np.arange(x.shape[-2]) == k)[:, None]
        v = v.astype(x.dtype)
        result -= v * (tau[..., k, None, None] * (np.swapaxes(v, -1, -2) @ result))
    return result


@ormqr.decompose
def ormqr_reflections(g, x, tau, other, left, transpose):
    reflections, result = Term(g, x), Term(g, other)
    if not left:
        result, transpose = transposed(result), not transpose
    *batch, count = g.type(tau).shape
    factors = Term(g, tau).reshape(shape=[*batch, 1, count])

    def mirrored(k: Term, result: Term, x: Term, tau: Term) -> list[Term]:
        k = k if transpose else (count - 1) - k
        rows = numbers(x, -2)
        v = (rows > k).where(line(x, -1, k), rows.eq(k).to(x.dtype))
        return [_mirrored(result, v, line(tau, -1, k))]

    (result,) = repeated(g, count, mirrored, [result], [reflections, factors])
    return (result if left else transposed(result)).value
