"""Regularized incomplete gamma functions: aten::igamma, from 0 to ``other``, and igammac, the complement.

A power series up to other = x + 1, a continued fraction beyond, each in a loop to its last needed term. For
large x, for which they need ever more terms, an asymptotic expansion. All in the type of the arguments, of
halves in float32, so that what tells near numbers from each other begins with their difference.
Source: NIST Digital Library of Mathematical Functions, 8.11.4, 8.9.2, 8.12.3, 8.12.4 and 8.12.10.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula, repeated
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.ops.special.gamma import DIGITS, precise, rest_of_stirling
from tmconvert.symbolics.results import broadcast

# from here on the expansion is exact to 1e-7 and 1e-10
LARGE = {"float32": 30, "float64": 1000}
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
    op.unsupported("caffe", "it requires a loop, which Caffe does not have")
    return op


igamma, igammac = OPS = [_op(name) for name in ("igamma", "igammac")]


def _enough(x: Term) -> float:
    """Whether the last term is negligible."""
    return 16 * float(np.finfo(x.dtype).eps)


def _series(a: Term, x: Term) -> Term:
    """1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..."""

    def step(state: list[Term], around: list[Term]) -> tuple[Term, list[Term]]:
        count, term, total = state
        a, x = around
        count = count + 1
        term = term * x / (a + count)
        total = total + term
        return term > total * _enough(a), [count, term, total]

    wanted = a.eq(a)
    one = wanted.where(a.like(1), 1)
    return repeated(wanted, [a.like(0), one, one], [a, x], step)[2]


def _fraction(a: Term, x: Term) -> Term:
    """Continued fraction 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), by Lentz' method."""

    def step(state: list[Term], around: list[Term]) -> tuple[Term, list[Term]]:
        count, c, d, result = state
        a, x = around
        count = count + 1
        part = count * (a - count)
        base = x - a + (count * 2 + 1)
        d = 1 / (part * d + base)
        c = base + part / c
        change = c * d
        return (change - 1).abs() > _enough(a), [count, c, d, result * change]

    d = 1 / (x + 1 - a)
    wanted = d.eq(d)
    start = [a.like(0), wanted.where(d.like(1e30), 1e30), d, d]
    return repeated(wanted, start, [a, x], step)[3]


def _distance(a: Term, x: Term) -> Term:
    """x / a - 1 - log(x / a)."""
    excess = (x - a) / a
    is_near = excess.abs() < 0.5
    near, far = is_near.where(excess, 0), is_near.where(0.5, excess)
    t = near / (near + 2)
    return is_near.where(near * t - t * t * t * (t * t).horner(LOGARITHM) * 2, far - (far + 1).log())


def _expanded(a: Term, x: Term, side: int) -> Term:
    """The lower (``side`` -1) or upper (1) function by an asymptotic expansion."""
    distance = _distance(a, x)
    eta = (x - a).sign() * (distance * 2).sqrt()
    near = (eta.abs() < 1).where(eta, 1)  # beyond, next to nothing is left of the tail
    series = near.horner(EXPANSION[2])
    for row in EXPANSION[1::-1]:
        series = near.horner(row) + series / a
    tail = (-(a * distance)).exp() * series / (a * (2 * math.pi)).sqrt()
    return (eta * (a * 0.5).sqrt() * side).erfc() * 0.5 + tail * side


def _power(a: Term, x: Term) -> Term:
    """x^a exp(-x) / gamma(a + 1)."""
    first, _ = DIGITS[a.dtype.name]
    is_small = a < first
    small, large = is_small.where(a, 1), is_small.where(first, a)
    direct = small * x.log() - x - (small + 1).lgamma()
    scaled = -(large * _distance(large, x)) - (large * (2 * math.pi)).log() * 0.5 - rest_of_stirling(large)
    return is_small.where(direct, scaled).exp()


def _parts(a: Term, x: Term, side: int) -> Term:
    large = LARGE[a.dtype.name]
    is_usual = (a > 0) & (a < np.inf) & (x > 0) & (x < np.inf)
    is_large = is_usual & (a >= large)
    is_low = is_usual & (a < large) & (x < a + 1)
    is_high = is_usual & (a < large) & (x >= a + 1)
    is_small = is_low | is_high
    power = _power(is_small.where(a, 1), is_small.where(x, 1))
    below = _series(is_low.where(a, 1), is_low.where(x, 1)) * power
    far = is_high.where(a, 1)
    above = _fraction(far, is_high.where(x, 2)) * power * far
    lower = is_low.where(below, 1 - above)
    part = lower if side < 0 else is_low.where(1 - below, above)
    return is_large.where(_expanded(is_large.where(a, large), is_large.where(x, large), side), part)


def _whole(x: Term, other: Term, side: int) -> Term:
    """Applies torch's limits: at a = 0 and at infinities the result is 0 or 1."""
    a, z = precise(x), precise(other)
    result = _parts(a, z, side)
    none, all_ = (0, 1) if side < 0 else (1, 0)
    result = (a.ne(a) | z.ne(z)).where(np.nan, result)
    result = z.eq(np.inf).where(all_, result)
    result = a.eq(np.inf).where(z.eq(np.inf).where(np.nan, z.like(none)), result)
    result = z.eq(0).where(none, result)
    result = a.eq(0).where((z > 0).where(all_, z.like(np.nan)), result)
    return ((a < 0) | (z < 0)).where(np.nan, result).to(x.dtype)


formula(igamma, is_kernel=True)(lambda x, other: _whole(x, other, -1))
formula(igammac, is_kernel=True)(lambda x, other: _whole(x, other, 1))
