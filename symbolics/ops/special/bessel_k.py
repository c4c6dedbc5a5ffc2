"""Modified Bessel functions of the second kind: aten::special_modified_bessel_k0, k1, and the scaled ones.

Those called scaled are multiplied by exp(x). Chebyshev's series in x^2 - 2 for x up to 2,
in 8 / x - 2 beyond.
Source of the coefficients: S. Moshier, Cephes Mathematical Library, k0.c and k1.c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmconvert.symbolics.idioms.cephes import coefficients
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import same_as

BOUND = 2
# each by order: 0 and 1; from the highest polynomial on
NEAR, FAR = coefficients("near_k0", "near_k1"), coefficients("far_k0", "far_k1")
TERMS = 14  # of the power series of I(x), exact up to BOUND
# name: (order, whether it is multiplied by exp(x))
TABLE = {
    f"special_{prefix}modified_bessel_k{order}": (order, bool(prefix))
    for prefix in ("", "scaled_")
    for order in (0, 1)
}


def _chebyshev(x: Term, series: Sequence[float]) -> Term:
    """Sums Chebyshev polynomials of x / 2 by Clenshaw's recurrence, without negligible terms."""
    least = float(np.finfo(x.dtype).eps) / 64
    needed = [value for value in series if abs(value) > least]
    before, last, result = x.like(0), x.like(0), x.like(needed[0])
    for value in needed[1:]:
        before, last = last, result
        result = x * last - before + value
    return (result - before) * 0.5


def _first_kind(x: Term, order: int) -> Term:
    """I(x). Source: Abramowitz and Stegun, 9.6.10."""
    series = [1 / (4**k * math.factorial(k) * math.factorial(k + order)) for k in range(TERMS)]
    result = (x * x).horner(series[::-1])
    return result * x * 0.5 if order else result


def _near(x: Term, order: int) -> Term:
    logarithm = (x * 0.5).log() * _first_kind(x, order)
    series = _chebyshev(x * x - 2, NEAR[order])
    return logarithm + series / x if order else series - logarithm


def _op(name: str) -> Op:
    order, is_scaled = TABLE[name]
    op = Op(f"aten::{name}", args=[Tensor("x", ("float32", "float64"))], result=same_as("x"), layout=ANY)

    @formula(op, is_kernel=True)
    def bessel(x: Term) -> Term:
        is_near = x <= BOUND
        inside, outside = (is_near & (x > 0)).where(x, 1), is_near.where(BOUND, x)
        near, far = _near(inside, order), _chebyshev(8 / outside - 2, FAR[order]) / outside.sqrt()
        if is_scaled:
            near = near * inside.exp()
        else:
            far = far * (-outside).exp()
        return x.eq(0).where(np.inf, (x < 0).where(np.nan, is_near.where(near, far)))

    return op


OPS = [_op(name) for name in TABLE]
