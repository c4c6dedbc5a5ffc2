"""Orthogonal polynomials of tensor degree n: aten::special_chebyshev_polynomial_t and similar ops.

By their recurrences, in a loop to the largest n; where all n are known and small, in as many steps. As torch
has it: n is cut to an integer; of a negative n, of infinity and NaN the polynomial is 0; Hermite's are
NaN from a degree on; those of Chebyshev are sines and cosines of multiples of an angle within (-1, 1), where
n is large. The shifted ones are taken at 2x - 1. (Of shifted w in float32 just below 1, where the sine of the
half angle is lost, torch gives the value at 0; this is the one at 1.)
Source: Abramowitz and Stegun, 22.3.15, 22.3.16 and 22.7; the limits are those of torch's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula, repeated
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import broadcast

UNROLLED = 12  # steps, beyond which they are a loop
END = 2.0**63  # of torch's degrees
Recurrence = Callable[[Term, Term, Term, Term], Term]


class Wave(NamedTuple):
    """sin or cos of (n + shift) times the angle, divided by sin or cos of the angle or its half."""

    numerator: str
    shift: float = 0
    divisor: str = ""
    part: float = 1


class Row(NamedTuple):
    """``slope`` x + ``offset`` is degree 1; ``after(x, p, q, k)`` is the polynomial after q, of degree k.

    At each of the ``points`` the polynomial is (m n + 1) times -1^n to the left of 0, with m at hand.
    ``wave`` is used above the degree ``bound``, ``most`` is the largest degree by element type.
    """

    slope: float
    offset: float
    after: Recurrence
    points: Mapping[float, int] = {}
    wave: Wave | None = None
    bound: int = 0
    most: Mapping[str, int] = {}
    is_shifted: bool = False


def _chebyshev(x: Term, p: Term, q: Term, k: Term) -> Term:
    return (x + x) * q - p


LIMITS = {"float32": 128, "float64": 512}
KINDS = {
    "t": Row(1, 0, _chebyshev, {1: 0, -1: 0}, Wave("cos"), 6),
    "u": Row(2, 0, _chebyshev, {1: 1, -1: 1}, Wave("sin", 1, "sin"), 8),
    "v": Row(2, -1, _chebyshev, {1: 0, -1: 2}, Wave("cos", 0.5, "cos", 0.5), 8),
    "w": Row(2, 1, _chebyshev, {1: 2, -1: 0}, Wave("sin", 0.5, "sin", 0.5), 8),
}
SHIFTED_BOUNDS = {"t": 6, "u": 6, "v": 6, "w": 4}
TABLE = {
    **{f"chebyshev_polynomial_{kind}": row for kind, row in KINDS.items()},
    **{
        f"shifted_chebyshev_polynomial_{kind}": row._replace(bound=SHIFTED_BOUNDS[kind], is_shifted=True)
        for kind, row in KINDS.items()
    },
    "hermite_polynomial_h": Row(2, 0, lambda x, p, q, k: (x + x) * q - (k + k) * p, most=LIMITS),
    "hermite_polynomial_he": Row(1, 0, lambda x, p, q, k: x * q - k * p, most=LIMITS),
    "laguerre_polynomial_l": Row(-1, 1, lambda x, p, q, k: ((k + k + (1 - x)) * q - k * p) / (k + 1), {0: 0}),
    "legendre_polynomial_p": Row(
        1, 0, lambda x, p, q, k: ((k + k + 1) * x * q - k * p) / (k + 1), {1: 0, -1: 0}
    ),
}


def _at(point: float, factor: int, n: Term) -> Term:
    """Evaluates the polynomial at an end point of its row."""
    size = n * factor + 1
    return size if point >= 0 else size * (1 - (n - (n * 0.5).floor() * 2) * 2)


def _wave(row: Row, x: Term, n: Term) -> Term:
    """Replaces the result at the ends of (-1, 1), where the divisor is 0 up to rounding."""
    wave = row.wave
    assert wave is not None
    angle = x.acos()
    result = ((n + wave.shift) * angle).call(wave.numerator)
    if not wave.divisor:
        return result
    part = angle * wave.part
    result = result / part.call(wave.divisor)
    if wave.part == 1:
        return result
    other, end = ("sin", -1) if wave.divisor == "cos" else ("cos", 1)
    return part.call(other).eq(1).where(_at(end, row.points[end], n), result)


def _recurrence(row: Row, x: Term, p: Term, q: Term, n: Term) -> Term:
    """Computes degree ``n`` by recurrence from degrees 0 and 1.

    Up to the largest degree that the element type counts to, 2^24 in float32.
    """

    def step(state: list[Term], around: list[Term]) -> tuple[Term, list[Term]]:
        p, q, k = state
        x, n = around
        is_short = k < n
        after = is_short.where(row.after(x, p, q, k), q)
        later = k + 1
        return (later < n) & (k < later) & after.eq(after), [is_short.where(q, p), after, later]

    return repeated((n > 1) & q.eq(q), [p, q, n.like(1)], [x, n], step)[1]


def _few_steps(row: Row, x: Term, p: Term, q: Term, n: Term, known: np.ndarray) -> Term:
    for k in range(1, int(known.max(initial=0))):
        after = row.after(x, p, q, x.like(k))
        if (known > k).all():
            p, q = q, after
        else:
            p, q = (n > k).where(q, p), (n > k).where(after, q)
    return q


def _known_values(row: Row, x: Term, n: Term) -> list[tuple[Term, Term]]:
    """Returns (where, what): elements that need no recurrence, and their values."""
    found = [(x.eq(point), _at(point, factor, n)) for point, factor in row.points.items()]
    if row.wave and x.dtype == np.float32:  # ONNX Runtime has no arc cosine of float64
        is_wave = (n > row.bound) & (x.abs() < 1)
        found.append((is_wave, _wave(row, is_wave.where(x, 0), n)))
    if row.most:
        found.append((n > row.most[x.dtype.name], x.like(np.nan)))
    return found


def _polynomial(row: Row, x: Term, n: Term) -> Term:
    is_degree = (n > -1) & (n < END)
    n = (is_degree & (n > 0)).where(n, 0).floor()
    x = is_degree.where(x, 0)  # in the shape of the result
    if row.is_shifted:
        x = x + x - 1
    p, q = x.eq(x).where(x.like(1), 1), x * row.slope + row.offset
    known = n.g.known(n.value)
    if known is not None and known.max(initial=0) <= UNROLLED:
        result = _few_steps(row, x, p, q, n, known)
    else:
        exact, steps = _known_values(row, x, n), n
        for where, _ in exact:
            steps = where.where(0, steps)
        result = _recurrence(row, x, p, q, steps)
        for where, what in exact:
            result = where.where(what, result)
    return is_degree.where(n.eq(0).where(1, result), 0)


def _op(name: str) -> Op:
    dtypes = ("float32", "float64")
    op = Op(
        f"aten::special_{name}",
        args=[Tensor("x", dtypes), Tensor("n", dtypes)],
        result=broadcast("x", "n"),
        layout=ANY,
    )

    @formula(op, is_kernel=True)
    def polynomial(x: Term, n: Term) -> Term:
        return _polynomial(TABLE[name], x, n)

    return op


OPS = [_op(name) for name in TABLE]
