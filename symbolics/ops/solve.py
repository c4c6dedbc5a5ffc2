"""Equations of square matrices: aten::linalg_cholesky, linalg_solve and linalg_slogdet.

ONNX has no operator for the first two, nor for aten::linalg_inv: matrices of up to LARGEST rows are taken
apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Refusal
from ...ir.dims import broadcast_shapes
from ...ir.types import TensorType
from ..idioms.formulas import Term
from ..op import FLOATS, Op, Tensor, boolean
from .linalg import inv, square_matrices

Array = np.ndarray
LARGEST = 8
NOT_YET = "not written yet for TFLite"


def _factor(x: TensorType, upper: bool) -> TensorType:
    return square_matrices(x)


def _solution(A: TensorType, B: TensorType, left: bool) -> TensorType:
    rows = square_matrices(A).shape[-1]
    if A.dtype != B.dtype or B.rank < 2 or B.shape[-2 if left else -1] != rows:
        raise ValueError(f"{B} has no columns or rows of {rows} elements of the type of {A}")
    return TensorType(A.dtype, (*broadcast_shapes(A.shape[:-2], B.shape[:-2]), *B.shape[-2:]))


cholesky = Op("aten::linalg_cholesky", args=[Tensor("x", FLOATS), boolean("upper", False)], result=_factor)
solve = Op(
    "aten::linalg_solve",
    args=[Tensor("A", FLOATS), Tensor("B", FLOATS), boolean("left", True)],
    result=_solution,
)
slogdet = Op(
    "aten::linalg_slogdet",
    args=[Tensor("A", FLOATS)],
    result=lambda A: [TensorType(A.dtype, square_matrices(A).shape[:-2])] * 2,
)
OPS = [cholesky, solve, slogdet]
for _op in OPS:
    _op.unsupported("caffe", "no layer reads single elements")
    _op.unsupported("tflite", NOT_YET)


def _number_or_nan(compute: Callable[[], Array], shape: tuple[int, ...]) -> Array:
    try:
        return compute()
    except np.linalg.LinAlgError:
        return np.full(shape, np.nan)


@cholesky.reference
def linalg_cholesky_ref(x: Array, upper: bool) -> Array:
    """The lower triangle L with L L^T = x, or its transpose. NaN where there is none."""
    lower = _number_or_nan(lambda: np.linalg.cholesky(x.astype(np.float64)), x.shape).astype(x.dtype)
    return np.swapaxes(lower, -1, -2) if upper else lower


@solve.reference
def linalg_solve_ref(A: Array, B: Array, left: bool) -> Array:
    """X with A X = B, or X A = B; NaN where A has no inverse."""
    if not left:
        return np.swapaxes(linalg_solve_ref(np.swapaxes(A, -1, -2), np.swapaxes(B, -1, -2), True), -1, -2)
    shape = (*broadcast_shapes(A.shape[:-2], B.shape[:-2]), *B.shape[-2:])
    solution = _number_or_nan(lambda: np.linalg.solve(A.astype(np.float64), B.astype(np.float64)), shape)
    return solution.astype(A.dtype)


@slogdet.reference
def linalg_slogdet_ref(A: Array) -> list[Array]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    return [np.asarray(part).astype(A.dtype) for part in np.linalg.slogdet(A.astype(np.float64))]


@slogdet.decompose(onnx=11)
def linalg_slogdet_det(g, A):
    det = Term(g, g.call("aten::linalg_det", A))
    return [det.sign().value, det.abs().log().value]


def few_rows(g: Any, matrices: Any) -> int:
    """How many rows the matrices have. Raises Refusal for more than are worth taking apart."""
    rows = g.type(matrices).shape[-1]
    if not isinstance(rows, int) or rows > LARGEST:
        raise Refusal(
            f"no operator takes matrices apart, and those of more than {LARGEST} rows need too many"
        )
    return rows


def _part(x: Term, dim: int, start: int, end: int) -> Term:
    return x.slice(dim=dim, start=start, end=end)


def solved(left: Term, right: Term) -> Term:
    """X with left X = right, of one batch, by Gauss and Jordan with the largest pivot of each column.

    Rows are not exchanged: ``chosen`` says in which row the pivot of each column is.
    """
    g, rows = left.g, few_rows(left.g, left.value)
    both = Term(g, g.call("aten::cat", [left.value, right.value], -1))
    columns = g.type(both.value).shape[-1]
    numbers = Term(g, g.constant(np.arange(rows, dtype=np.int32).reshape(rows, 1)))
    free: Term | None = None
    chosen = []
    for k in range(rows):
        column = _part(both, -1, k, k + 1)
        size = column.abs() if free is None else (column.abs() + 1) * free
        is_pivot = numbers.eq(size.argmax(dim=-2, keepdim=True).to(np.int32)).to(left.dtype)
        row = (is_pivot * both).sum(dim=[-2], keepdim=True)
        both = both - (column - is_pivot) * (row / _part(row, -1, k, k + 1))
        free = 1 - is_pivot if free is None else free - is_pivot
        chosen.append(is_pivot.value)
    places = Term(g, g.call("aten::cat", chosen, -1))
    return _turned(places).matmul(_part(both, -1, rows, columns))


def _turned(x: Term) -> Term:
    rank = x.type.rank
    return x.permute(dims=[*range(rank - 2), rank - 1, rank - 2])


def _spread(x: Term, batch: tuple[int, ...]) -> Term:
    shape = [*batch, *x.type.shape[-2:]]
    return x if list(x.type.shape) == shape else x.expand(size=shape)


@solve.decompose
def linalg_solve_gauss(g, A, B, left):
    batch = broadcast_shapes(g.type(A).shape[:-2], g.type(B).shape[:-2])
    matrices, values = (_spread(Term(g, each), batch) for each in (A, B))
    if left:
        return solved(matrices, values).value
    return _turned(solved(_turned(matrices), _turned(values))).value


@inv.decompose
def linalg_inv_gauss(g, x):
    rows = few_rows(g, x)
    identity = Term(g, g.constant(np.eye(rows), g.type(x).dtype))
    return solved(Term(g, x), _spread(identity, g.type(x).shape[:-2])).value


@cholesky.decompose
def linalg_cholesky_columns(g, x, upper):
    """Column by column: what is left of the matrix less the product of each column with itself."""
    rows, rest, columns = few_rows(g, x), Term(g, x), []
    for k in range(rows):
        column = _part(rest, -1, 0, 1) / _part(_part(rest, -1, 0, 1), -2, 0, 1).sqrt()
        zeros = g.constant(np.zeros((k, 1)), g.type(x).dtype)
        above = _spread(Term(g, zeros), g.type(x).shape[:-2])
        columns.append(g.call("aten::cat", [above.value, column.value], -2) if k else column.value)
        size = rows - k
        rest = _part(_part(rest - column * _turned(column), -1, 1, size), -2, 1, size) if size > 1 else rest
    lower = Term(g, g.call("aten::cat", columns, -1))
    return (_turned(lower) if upper else lower).value
