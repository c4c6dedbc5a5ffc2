"""aten::special_zeta, Hurwitz's zeta: the sum of (other + i) ^ -x over i = 0, 1, ..., by Euler and Maclaurin.

With torch's limits: no number for x below 1, infinity at x = 1 and at the poles 0, -1, ... of
``other``. Source: Abramowitz and Stegun, 23.1.30 and 23.2.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula, repeated
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import broadcast

FIRST = 9  # so many terms are added, at least, and those up to this number
# Bernoulli's numbers B2, B4, ... by their factorials
SERIES = [
    b / math.factorial(2 * k)
    for k, b in enumerate(
        (
            *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
            *(43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730),
        ),
        start=1,
    )
]

special_zeta = Op(
    "aten::special_zeta",
    args=[Tensor("x", ("float32", "float64")), Tensor("other", ("float32", "float64"))],
    result=broadcast("x", "other"),
    layout=ANY,
)
special_zeta.unsupported("caffe", "it requires a loop, which Caffe does not have")


def _step(state: list[Term], around: list[Term]) -> tuple[Term, list[Term]]:
    """Adds one more term where needed; ``lost`` is the accumulated rounding error.

    Below 0 terms cancel each other. Source: D. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
    """
    count, place, total, lost, term, goes_on = state
    (x,) = around
    count = count + 1
    place = goes_on.where(place + 1, place)
    term = goes_on.where(place.pow(-x), term)
    added = total + term
    kept = added - total
    lost = goes_on.where(lost + (total - (added - kept)) + (term - kept), lost)
    total = goes_on.where(added, total)
    goes_on = goes_on & ((place <= FIRST) | (count < FIRST)) & ~_is_last(term, total)
    return goes_on, [count, place, total, lost, term, goes_on]


def _is_last(term: Term, total: Term) -> Term:
    """Whether half of the term would be lost by rounding."""
    least = float(np.finfo(total.dtype).eps) / 2
    return (total * -least < term) & (term < total * least)


def _rest(x: Term, place: Term, term: Term) -> Term:
    """Returns the remainder after ``term``, place ^ -x."""
    result = term * place / (x - 1) - term * 0.5
    part = x * term / place
    for k, coefficient in enumerate(SERIES):
        result = result + part * coefficient
        part = part * ((x + (2 * k + 1)) / place) * ((x + (2 * k + 2)) / place)
    return result


@formula(special_zeta, is_kernel=True)
def zeta(x: Term, other: Term) -> Term:
    is_whole = other.eq(other.floor())
    is_pole = (other <= 0) & is_whole
    is_none = ((other <= 0) & ~is_whole & x.ne(x.floor())) | x.ne(x)
    is_usual = (x > 1) & ~is_pole & ~is_none
    s, place = is_usual.where(x, 2), is_usual.where(other, 1)
    first = place.pow(-s)
    state = [s.like(0), place, first, is_usual.where(s.like(0), 0), first, is_usual]
    _, place, total, lost, term, _ = repeated(is_usual, state, [s], _step)
    rest = lost + _is_last(term, total).where(0, _rest(s, place, term))
    sum_ = first.abs().eq(np.inf).where(first, total + rest)
    result = is_pole.where(np.inf, is_none.where(np.nan, sum_))
    return (x < 1).where(np.nan, x.eq(1).where(np.inf, result))
