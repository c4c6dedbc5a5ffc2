"""The incomplete gamma functions by the whole: aten::igamma, from 0 to ``other``, and igammac, the rest.

In float64: a power series up to other = x + 1, a continued fraction beyond, each in a loop to its last
needed term. For large x, for which they need ever more terms, an asymptotic expansion.
Source: NIST Digital Library of Mathematical Functions, 8.11.4, 8.9.2, 8.12.3, 8.12.4 and 8.12.10.
"""

from __future__ import annotations

import math

import numpy as np

from ..idioms.formulas import Term, formula, repeated
from ..layouts import ANY
from ..op import FLOATS, Op, Tensor
from ..results import broadcast

LARGE = 1000  # from here on the expansion is exact to 1e-10
ENOUGH = 1e-13  # the last term, by the sum
# of log((1 + t) / (1 - t)) / 2, less t, by t^3, in t^2 up to 1/9
LOGARITHM = [1 / (2 * k + 3) for k in range(14)][::-1]
# by powers of 1 / x, and of eta from the highest on
EXPANSION = (
    (
        *(8.296711340953086e-07, -1.8540622107151603e-06, -2.1854485106799924e-06),
        *(3.919263178522438e-05, -0.00017875514403292182, 0.0003527336860670194),
        *(0.0011574074074074073, -0.014814814814814815, 1 / 12, -1 / 3),
    ),
    (
        *(-1.8098550334489977e-05, -4.0187757201646093e-07, 0.00020576131687242798),
        *(-0.0009902263374485596, 0.0026455026455026454, -1 / 288, -1 / 540),
    ),
    (-0.0001073665, 2.0093878600823046e-06, 0.0007716049382716049, -0.0026813271604938273, 25 / 6048),
)


def _op(name: str) -> Op:
    op = Op(
        f"aten::{name}",
        args=[Tensor("x", FLOATS), Tensor("other", FLOATS)],
        result=broadcast("x", "other"),
        layout=ANY,
    )
    op.unsupported("caffe", "it computes in float64")
    op.unsupported("tflite", "its operators compute in float32, in which the digits are lost")
    return op


igamma, igammac = OPS = [_op(name) for name in ("igamma", "igammac")]


def _series(a: Term, x: Term) -> Term:
    """1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..."""

    def step(state: list[Term], around: list[Term]) -> tuple[Term, list[Term]]:
        count, term, total = state
        a, x = around
        count = count + 1
        term = term * x / (a + count)
        total = total + term
        return term > total * ENOUGH, [count, term, total]

    wanted = a.eq(a)
    one = wanted.where(a.like(1), 1)
    return repeated(wanted, [a.like(0), one, one], [a, x], step)[2]


def _fraction(a: Term, x: Term) -> Term:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), by Lentz' method."""

    def step(state: list[Term], around: list[Term]) -> tuple[Term, list[Term]]:
        count, c, d, result = state
        a, x = around
        count = count + 1
        part = count * (a - count)
        base = x - a + (count * 2 + 1)
        d = 1 / (part * d + base)
        c = base + part / c
        change = c * d
        return (change - 1).abs() > ENOUGH, [count, c, d, result * change]

    d = 1 / (x + 1 - a)
    wanted = d.eq(d)
    start = [a.like(0), wanted.where(d.like(1e300), 1e300), d, d]
    return repeated(wanted, start, [a, x], step)[3]


def _expanded(a: Term, x: Term, side: int) -> Term:
    """The part below ``x`` (``side`` -1) or above (1); beyond a factor of 2 from ``a`` it is 0 or 1."""
    ratio = x / a
    excess = (ratio < 0.5).where(0.5, (ratio > 2).where(2, ratio)) - 1
    t = excess / (excess + 2)
    # 2 (excess - log(1 + excess)), of which log1p would lose the digits
    square = (excess * t - t * t * t * (t * t).horner(LOGARITHM) * 2) * 2
    eta = excess.sign() * square.sqrt()
    series = eta.horner(EXPANSION[2])
    for row in EXPANSION[1::-1]:
        series = eta.horner(row) + series / a
    tail = (a * square * -0.5).exp() * series / (a * (2 * math.pi)).sqrt()
    return (eta * (a * 0.5).sqrt() * side).erfc() * 0.5 + tail * side


def _parts(a: Term, x: Term, side: int) -> Term:
    is_usual = (a > 0) & (a < np.inf) & (x > 0) & (x < np.inf)
    is_large = is_usual & (a >= LARGE)
    is_low = is_usual & (a < LARGE) & (x < a + 1)
    is_high = is_usual & (a < LARGE) & (x >= a + 1)
    near, low = is_low.where(a, 1), is_low.where(x, 1e-300)
    below = _series(near, low) * (near * low.log() - low - (near + 1).lgamma()).exp()
    far, high = is_high.where(a, 1), is_high.where(x, 2)
    above = _fraction(far, high) * (far * high.log() - high - far.lgamma()).exp()
    lower = is_low.where(below, 1 - above)
    part = lower if side < 0 else is_low.where(1 - below, above)
    return is_large.where(_expanded(is_large.where(a, LARGE), is_large.where(x, LARGE), side), part)


def _whole(x: Term, other: Term, side: int) -> Term:
    """With torch's limits: at a = 0 and at infinities all is on one side."""
    a, z = x.to(np.float64), other.to(np.float64)
    result = _parts(a, z, side)
    none, all_ = (0, 1) if side < 0 else (1, 0)
    result = (a.ne(a) | z.ne(z)).where(np.nan, result)
    result = z.eq(np.inf).where(all_, result)
    result = a.eq(np.inf).where(z.eq(np.inf).where(np.nan, z.like(none)), result)
    result = z.eq(0).where(none, result)
    result = a.eq(0).where((z > 0).where(all_, z.like(np.nan)), result)
    return ((a < 0) | (z < 0)).where(np.nan, result).to(x.dtype)


@formula(igamma, is_kernel=True)
def lower_part(x: Term, other: Term) -> Term:
    return _whole(x, other, -1)


@formula(igammac, is_kernel=True)
def upper_part(x: Term, other: Term) -> Term:
    return _whole(x, other, 1)
