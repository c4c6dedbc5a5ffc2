"""Eigenvalues and singular values by Jacobi's rotations, in a loop.

A round rotates disjoint pairs of columns at once, and so many rounds pair each column with each other one: a
sweep. Sweeps are repeated a fixed number of times, after which float rounding is all that is left.
Source: Golub and Van Loan, Matrix Computations, 8.5 (pairs in parallel) and 8.6.3 (one-sided).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.matrices import numbers, repeated, total, transposed, unit

SWEEPS = {"float32": 6, "float64": 8}  # of two columns; twice as many columns need one more


class Rotation(NamedTuple):
    """The factors of each column and of its partner, whose sum replaces the column."""

    partner: Term
    own: Term
    other: Term

    def columns(self, x: Term) -> Term:
        return x * self.own + partnered(x, -1, self.partner) * self.other

    def rows(self, x: Term) -> Term:
        return x * transposed(self.own) + partnered(x, -2, self.partner) * transposed(self.other)


def partnered(x: Term, axis: int, partner: Term) -> Term:
    """Returns for each column (``axis`` -1) or row (-2) its partner."""
    return Term(x.g, x.g.call("aten::index_select", x.value, axis, partner.value))


def diagonal(x: Term) -> Term:
    return Term(x.g, x.g.call("aten::diagonal", x.value, 0, -2, -1))


def as_row(x: Term) -> Term:
    """Returns vectors as matrices of one row."""
    *batch, count = x.type.shape
    return x.reshape(shape=[*batch, 1, count])


def eigenvalues(x: Term) -> tuple[Term, Term]:
    """Returns the eigenvalues of symmetric matrices in ascending order, and their vectors as columns."""
    count = _count(x, "eigenvalues")
    if not count:
        return x.sum(dim=[-1]), x
    scale = _scale(x)

    def step(k: Term, matrix: Term, vectors: Term, pairs: Term) -> list[Term]:
        own = as_row(diagonal(matrix))
        partner = _partner(k, pairs)
        others = partnered(matrix, -1, partner)
        products = as_row(diagonal(others))
        rotation = _rotation(partner, own, products)
        return [rotation.rows(rotation.columns(matrix)), rotation.columns(vectors)]

    start = unit(x.g, x.type.shape[:-2], count, count, x.dtype)
    matrix, vectors = _swept(x, count, step, [x / scale, start])
    values, order = _sorted(diagonal(matrix), descending=False)
    return values * scale.reshape(shape=[*x.type.shape[:-2], 1]), _reordered(vectors, order)


def singular_values(x: Term) -> tuple[Term, Term, Term]:
    """Returns ``U S``, the singular values S in descending order, and V of matrices that have at least as
    many rows as columns.
    """
    count = _count(x, "singular values")
    if not count:
        return x, x.sum(dim=[-2]), unit(x.g, x.type.shape[:-2], 0, 0, x.dtype)
    scale = _scale(x)

    def step(k: Term, products: Term, vectors: Term, pairs: Term) -> list[Term]:
        partner = _partner(k, pairs)
        squares = total(products * products, -2)
        others = partnered(products, -1, partner)
        rotation = _rotation(partner, squares, total(products * others, -2))
        return [rotation.columns(products), rotation.columns(vectors)]

    start = unit(x.g, x.type.shape[:-2], count, count, x.dtype)
    products, vectors = _swept(x, count, step, [x / scale, start])
    lengths = (products * products).sum(dim=[-2]).sqrt()
    values, order = _sorted(lengths, descending=True)
    scaled = _reordered(products, order) * scale
    return scaled, values * scale.reshape(shape=[*x.type.shape[:-2], 1]), _reordered(vectors, order)


def _count(x: Term, what: str) -> int:
    columns = x.type.shape[-1]
    if not isinstance(columns, int):
        raise Refusal(
            f"{what} of matrices whose smaller size is dynamic are not supported", "keep this size static"
        )
    return columns


def _scale(x: Term) -> Term:
    """Returns the largest magnitude of each matrix, 1 for one of zeros: squares stay within range."""
    largest = x.abs().amax(dim=[-2, -1], keepdim=True)
    return (largest > 0).where(largest, 1)


def _pairs(count: int) -> np.ndarray:
    """Returns for each round the partner of each column, a tournament; one without a partner has itself.

    >>> _pairs(3).tolist()
    [[0, 2, 1], [2, 1, 0], [1, 0, 2]]
    """
    even = count + count % 2
    players, rounds = list(range(even)), []
    for _ in range(even - 1):
        partner = list(range(even))
        for one, two in zip(players[: even // 2], players[: even // 2 - 1 : -1], strict=True):
            partner[one], partner[two] = two, one
        rounds.append([other if other < count else own for own, other in enumerate(partner[:count])])
        players = [players[0], players[-1], *players[1:-1]]
    return np.array(rounds, np.int32)


def _swept(x: Term, count: int, step: Any, state: list[Term]) -> list[Term]:
    if count == 1:
        return state
    pairs = _pairs(count)
    sweeps = SWEEPS.get(x.dtype.name, max(SWEEPS.values())) + int(np.log2(count))
    return repeated(x.g, sweeps * len(pairs), step, state, [Term(x.g, x.g.constant(pairs))])


def _partner(k: Term, pairs: Term) -> Term:
    rounds, count = pairs.type.shape
    place = k.call("remainder", rounds) if rounds > 1 else k * 0
    row = Term(k.g, k.g.call("aten::index_select", pairs.value, 0, place.value))
    return row.reshape(shape=[count])


def _rotation(partner: Term, squares: Term, products: Term) -> Rotation:
    """Returns the rotation that makes columns with these squares and products orthogonal.

    Both columns of a pair compute it: their tangents have to differ in sign alone. Where it is undetermined,
    by equal squares, the index decides.
    """
    products = products + partnered(products, -1, partner)  # twice; to the last bit that of both
    own = numbers(squares, -1)
    difference = partnered(squares, -1, partner) - squares
    is_rotated = products.eq(0).logical_or(own.eq(partner)).logical_not()
    ratio = difference / is_rotated.where(products, 1)
    is_positive = (ratio > 0) | (ratio.eq(0) & (own < partner))
    size = ratio.abs() + (ratio * ratio + 1).sqrt()
    tangent = (is_positive.to(size.dtype) * 2 - 1) / size
    tangent = is_rotated.where(tangent, 0)
    cosine = (tangent * tangent + 1).rsqrt()
    return Rotation(partner, cosine, -(cosine * tangent))


def _sorted(values: Term, *, descending: bool) -> list[Term]:
    results = values.g.call("aten::sort", values.value, -1, descending)
    return [Term(values.g, each) for each in results]


def _reordered(columns: Term, order: Term) -> Term:
    """Returns the columns of each matrix in another order."""
    index = as_row(order).expand(size=list(columns.type.shape))
    return Term(columns.g, columns.g.call("aten::gather", columns.value, -1, index.value))
