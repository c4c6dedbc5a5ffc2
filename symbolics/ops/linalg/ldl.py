"""LDL decomposition of symmetric matrices by Bunch-Kaufman: aten::linalg_ldl_factor_ex and linalg_ldl_solve.

D has blocks of one or two rows on its diagonal. ``pivots`` has, counted from 1, the row with which the last
row of a block was exchanged; its negative number twice for a block of two.
Source: sytf2 and sytrs of LAPACK, of the lower triangle.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import chosen, exchanged, full, numbers, repeated, spread, transposed
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.ops.linalg.determinants import square_matrices

Array = np.ndarray
INT32 = np.dtype(np.int32)
ALPHA = (1 + math.sqrt(17)) / 8  # bounds the growth of elements
FLOATS = ("float32", "float64")


def _factors(x: TensorType) -> list[TensorType]:
    *batch, rows, _ = square_matrices(x).shape
    return [x, TensorType(INT32, (*batch, rows)), TensorType(INT32, tuple(batch))]


def _solution(LD: TensorType, pivots: TensorType, B: TensorType) -> TensorType:
    *batch, rows, _ = square_matrices(LD).shape
    if pivots.shape != (*batch, rows) or B.rank < 2 or B.shape[-2] != rows or B.dtype != LD.dtype:
        raise ValueError(f"{LD}, {pivots} and {B} do not fit each other")
    return TensorType(B.dtype, (*broadcast_shapes(tuple(batch), B.shape[:-2]), *B.shape[-2:]))


ldl_factor_ex = Op("aten::linalg_ldl_factor_ex", args=[Tensor("x", FLOATS)], result=_factors)
ldl_solve = Op(
    "aten::linalg_ldl_solve",
    args=[Tensor("LD", FLOATS), Tensor("pivots", ("int32",)), Tensor("B", FLOATS)],
    result=_solution,
)
OPS = [ldl_factor_ex, ldl_solve]
for _op in OPS:
    _op.unsupported(
        "caffe", ("it requires a loop, which Caffe does not have, or several hundred layers per column")
    )


@ldl_factor_ex.reference
def ldl_factor_ex_ref(x: Array) -> list[Array]:
    """Returns L and D in one matrix, the pivots, and the index of the first zero block, or 0."""
    factors = np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)
    pivots, info = np.zeros(x.shape[:-1], INT32), np.zeros(x.shape[:-2], INT32)
    for place in np.ndindex(info.shape):
        k = 0
        while k < x.shape[-1]:
            rest = factors[place][k:, k:]
            size, row = _pivot(rest)
            if not rest[:, 0].any():
                info[place] = info[place] or k + 1
            _exchange(rest, size - 1, row)
            _exchange(rest.T, size - 1, row)
            pivots[place][k : k + size] = (k + row + 1) * (1 if size == 1 else -1)
            if rest[:, 0].any():
                columns = rest[size:, :size].copy()
                rest[size:, :size] = columns @ np.linalg.inv(rest[:size, :size])
                rest[size:, size:] -= rest[size:, :size] @ columns.T
            k += size
    return [np.tril(factors), pivots, info]


def _pivot(rest: Array) -> tuple[int, int]:
    """Returns the size of the next block, and the row that becomes its last one."""
    if len(rest) == 1:
        return 1, 0
    row = 1 + int(np.argmax(np.abs(rest[1:, 0])))
    here, below, there = abs(rest[0, 0]), abs(rest[row, 0]), abs(rest[row, row])
    others = np.delete(np.abs(rest[row]), row).max()
    if here >= ALPHA * below or here * others >= ALPHA * below * below:
        return 1, 0
    return (1, row) if there >= ALPHA * others else (2, row)


def _exchange(x: Array, first: int, second: int) -> None:
    x[[first, second]] = x[[second, first]]


@ldl_factor_ex.decompose
def ldl_factor_ex_blocks(g, x):
    lower = Term(g, x).tril(diagonal=0)
    *batch, rows, _ = lower.type.shape
    both = lower + transposed(lower.tril(diagonal=-1))
    zeros = full(g, [*batch, 1, 1], 0, INT32)
    state = [both, full(g, [*batch, 1, rows], 0, INT32), zeros, zeros]
    factors, pivots, _, info = repeated(g, rows, _next_block, state)
    shapes = ([*batch, rows], batch)
    flat = (each.reshape(shape=shape).value for each, shape in zip((pivots, info), shapes, strict=True))
    return [factors.tril(diagonal=0).value, *flat]


def _next_block(_: Term, x: Term, pivots: Term, at: Term, info: Term) -> list[Term]:
    """Processes a block of each matrix, at row ``at``, maybe after the last. The rest stays symmetric."""
    rows, columns = numbers(x, -2), numbers(x, -1)
    is_two, other, is_zero = _choice(x, at)
    last = at + is_two.to(INT32)
    before = columns < at
    x = before.where(x, exchanged(x, -2, last, other))
    x = (rows < at).where(x, exchanged(x, -1, last, other))
    inside = rows > last
    first, second = (inside.where(chosen(x, -1, place), 0) for place in (at, last))
    diagonal, corner, across = _block(x, at, last)
    top, bottom = corner / across, diagonal / across
    scale = is_two.where(1 / (is_two.where(top * bottom, 2) - 1) / across, 0)
    one = first / (is_two | diagonal.eq(0)).where(1, diagonal)
    w1 = is_two.where(scale * (top * first - second), one)
    w2 = scale * (bottom * second - first)
    x = x - w1 * transposed(first) - w2 * transposed(second)
    x = (inside & columns.eq(at)).where(w1, (inside & columns.eq(last)).where(w2, x))
    sign = is_two.where(-1, at.like(1))
    is_here = columns.eq(at) | columns.eq(last)
    info = (info.eq(0) & is_zero).where(at + 1, info)
    return [x, is_here.where(sign * (other + 1), pivots), last + 1, info]


def _block(x: Term, at: Term, last: Term) -> list[Term]:
    """Returns the elements of D: on the diagonal, and between the two rows, or 1 for a block of one."""
    places = ((at, at), (last, last), (at, last))
    diagonal, corner, across = (chosen(chosen(x, -1, column), -2, row) for column, row in places)
    return [diagonal, corner, last.eq(at).where(1, across)]


def _choice(x: Term, at: Term) -> tuple[Term, Term, Term]:
    """Returns whether the next block has two rows, the row that becomes its last, whether its column is 0."""
    rows = numbers(x, -2)
    column = chosen(x, -1, at).abs()
    here = chosen(column, -2, at)
    below = (rows > at).where(column, -1)
    row = below.argmax(dim=-2, keepdim=True)
    largest = (rows > at).where(column, 0).amax(dim=[-2], keepdim=True)
    its = chosen(x, -1, row).abs()
    there = chosen(its, -2, row)
    others = ((rows < at) | rows.eq(row)).where(0, its).amax(dim=[-2], keepdim=True)
    stays = ~(here < largest * ALPHA) | ~(here * others < largest * largest * ALPHA)
    is_two = ~stays & (there < others * ALPHA)
    is_zero = here.eq(0) & largest.eq(0) & (at < x.type.shape[-1])
    return is_two, stays.where(at, row), is_zero


@ldl_solve.reference
def ldl_solve_ref(LD: Array, pivots: Array, B: Array) -> Array:
    """Solves A X = B."""
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    X = np.broadcast_to(B, (*batch, *B.shape[-2:])).copy()
    LD, pivots = (
        np.broadcast_to(LD, (*batch, *LD.shape[-2:])),
        np.broadcast_to(pivots, (*batch, LD.shape[-1])),
    )
    for place in np.ndindex(batch):
        x, L, k, blocks = X[place], LD[place], 0, []
        while k < len(x):
            pivot = pivots[place][k]
            blocks.append((k, k + 1 + int(pivot < 0), abs(pivot) - 1))
            k = blocks[-1][1]
        for k, end, row in blocks:
            _exchange(x, end - 1, row)
            x[end:] -= L[end:, k:end] @ x[k:end]
            block = np.tril(L[k:end, k:end])
            x[k:end] = np.linalg.solve(block + np.tril(block, -1).T, x[k:end])
        for k, end, row in reversed(blocks):
            x[k:end] -= L[end:, k:end].T @ x[end:]
            _exchange(x, end - 1, row)
    return X


@ldl_solve.decompose
def ldl_solve_blocks(g, LD, pivots, B):
    batch = broadcast_shapes(g.type(LD).shape[:-2], g.type(B).shape[:-2])
    rows = g.type(B).shape[-2]
    row = Term(g, pivots).reshape(shape=[*g.type(pivots).shape[:-1], 1, rows])
    around = [spread(Term(g, LD), batch), spread(row, batch)]
    start = full(g, [*batch, 1, 1], 0, INT32)
    x, at = repeated(g, rows, _forward, [spread(Term(g, B), batch), start], around)
    return repeated(g, rows, _backward, [x, at - 1], around)[0].value


def _forward(_: Term, x: Term, at: Term, LD: Term, pivots: Term) -> list[Term]:
    """Forward substitution for the block that starts at row ``at``."""
    rows = numbers(x, -2)
    pivot = chosen(pivots, -1, at)
    is_two = pivot < 0
    last = at + is_two.to(INT32)
    x = exchanged(x, -2, last, pivot.abs() - 1)
    first, second = (chosen(x, -2, place) for place in (at, last))
    l1, l2 = ((rows > last).where(chosen(LD, -1, place), 0) for place in (at, last))
    x = x - l1 * first - is_two.where(l2, 0) * second
    diagonal, corner, across = _block(LD, at, last)
    top, bottom, first_, second_ = (each / across for each in (corner, diagonal, first, second))
    scale = is_two.where(top * bottom, 2) - 1
    x1 = is_two.where((top * first_ - second_) / scale, first / is_two.where(1, diagonal))
    x2 = is_two.where((bottom * second_ - first_) / scale, x1)
    return [rows.eq(at).where(x1, rows.eq(last).where(x2, x)), last + 1]


def _backward(_: Term, x: Term, at: Term, LD: Term, pivots: Term) -> list[Term]:
    """Backward substitution for the block that ends at row ``at``."""
    rows = numbers(x, -2)
    pivot = chosen(pivots, -1, at)
    start = at - (pivot < 0).to(INT32)
    below = (rows > at).where(x, 0)
    first, last = (
        chosen(x, -2, place) - transposed((rows > at).where(chosen(LD, -1, place), 0)).matmul(below)
        for place in (start, at)
    )
    x = rows.eq(at).where(last, rows.eq(start).where(first, x))
    return [exchanged(x, -2, at, pivot.abs() - 1), start - 1]
