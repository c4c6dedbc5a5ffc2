"""aten::linalg_matrix_exp, 1 + A + A A / 2 + A A A / 6 + ... of square matrices."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import looped, unit
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.ops.linalg.determinants import square_matrices

Array = np.ndarray
# of matrices of norm 1 these many powers are exact to 1 / 20!, less than a double tells
POWERS, AT_ONCE = 20, 5

matrix_exp = Op("aten::linalg_matrix_exp", args=[Tensor("x", ("float32", "float64"))], result=square_matrices)
matrix_exp.unsupported(
    "caffe", ("the number of squarings depends on the norm, which requires a loop, which Caffe does not have")
)


@matrix_exp.reference
def linalg_matrix_exp_ref(x: Array) -> Array:
    """Scaling and squaring: the Taylor polynomial of A / 2^n, squared n times."""
    norms = np.abs(x).sum(-2).max(-1, initial=0)
    halves = np.ceil(np.log2(np.maximum(norms.astype(np.float64), 1)))[..., None, None]
    small = x / np.exp2(halves)
    result = term = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    for power in range(1, POWERS):
        term = term @ small / power
        result = result + term
    for number in range(int(halves.max(initial=0))):
        result = np.where(halves > number, result @ result, result)
    return result.astype(x.dtype)


@matrix_exp.decompose
def linalg_matrix_exp_squared(g, x):
    matrix = Term(g, x)
    rows = matrix.type.shape[-1]
    norms = matrix.abs().sum(dim=[-2], keepdim=True).amax(dim=[-1], keepdim=True)
    norms = (norms > 1).where(norms, 1)  # NaN, too, is no number of halves
    most = math.log2(float(np.finfo(matrix.dtype).max))
    halves = (norms.log() / math.log(2)).ceil()
    halves = (halves < most).where(halves, most)
    one = unit(g, [], rows, rows, matrix.dtype)
    first = _polynomial(matrix / halves.like(2).pow(halves), one)

    def squared(result: Term, number: Term, halves: Term) -> list[Term]:
        after = number + 1
        return [_any(halves > after), (halves > number).where(result.matmul(result), result), after]

    start = halves.like(0)
    return looped(g, _any(halves > start), squared, [first, start], [halves])[0].value


def _any(x: Term) -> Term:
    return x.to(np.int32).sum(dim=list(range(x.type.rank))) > 0


def _polynomial(x: Term, one: Term) -> Term:
    """Evaluates the first POWERS terms, in groups of AT_ONCE with common powers."""
    powers = [one, x]
    while len(powers) <= AT_ONCE:
        powers.append(powers[-1].matmul(x))
    result: Term | None = None
    for start in reversed(range(0, POWERS, AT_ONCE)):
        terms = [powers[i] * (1 / math.factorial(start + i)) for i in range(AT_ONCE)]
        group = sum(terms[1:], terms[0])
        result = group if result is None else result.matmul(powers[AT_ONCE]) + group
    assert result is not None
    return result
