"""aten::special_zeta, Hurwitz's zeta: the sum of (other + i) ^ -x over i = 0, 1, ..., by Euler and Maclaurin.

In float64, and with torch's limits: no number for x below 1, infinity at x = 1 and at the poles 0, -1, ... of
``other``. Source: Abramowitz and Stegun, 23.1.30 and 23.2.
"""

from __future__ import annotations

import math

import numpy as np

from ..idioms.formulas import Term, formula, repeated
from ..layouts import ANY
from ..op import Op, Tensor
from ..results import broadcast

FIRST = 9  # so many terms are added, at least, and those up to this number
LEAST = 2.0**-53  # of the sum: smaller terms are the last
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
special_zeta.unsupported("caffe", "it computes in float64")
special_zeta.unsupported("tflite", "its operators compute in float32, in which the digits are lost")


def _step(state: list[Term], around: list[Term]) -> tuple[Term, list[Term]]:
    """One more term of those that need one."""
    count, place, total, term, goes_on = state
    (x,) = around
    count = count + 1
    place = goes_on.where(place + 1, place)
    term = goes_on.where(place.pow(-x), term)
    total = goes_on.where(total + term, total)
    goes_on = goes_on & ((place <= FIRST) | (count < FIRST)) & ~_is_last(term, total)
    return goes_on, [count, place, total, term, goes_on]


def _is_last(term: Term, total: Term) -> Term:
    return (total * -LEAST < term) & (term < total * LEAST)


def _rest(x: Term, place: Term, term: Term) -> Term:
    """What follows ``term``, place ^ -x."""
    result = term * place / (x - 1) - term * 0.5
    factor, power = x, term / place
    for k, coefficient in enumerate(SERIES):
        result = result + factor * power * coefficient
        factor = factor * (x + (2 * k + 1)) * (x + (2 * k + 2))
        power = power / place / place
    return result


@formula(special_zeta, is_kernel=True)
def zeta(x: Term, other: Term) -> Term:
    exponent, q = x.to(np.float64), other.to(np.float64)
    is_whole = q.eq(q.floor())
    is_pole = (q <= 0) & is_whole
    is_none = ((q <= 0) & ~is_whole & exponent.ne(exponent.floor())) | exponent.ne(exponent)
    is_usual = (exponent > 1) & ~is_pole & ~is_none
    s, place = is_usual.where(exponent, 2), is_usual.where(q, 1)
    first = place.pow(-s)
    _, place, total, term, _ = repeated(is_usual, [s.like(0), place, first, first, is_usual], [s], _step)
    sum_ = _is_last(term, total).where(total, total + _rest(s, place, term))
    result = is_pole.where(np.inf, is_none.where(np.nan, sum_))
    result = (exponent < 1).where(np.nan, exponent.eq(1).where(np.inf, result))
    return result.to(x.dtype)
