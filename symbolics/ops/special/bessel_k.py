"""Modified Bessel functions of the second kind: aten::special_modified_bessel_k0, k1, and the scaled ones.

Those called scaled are multiplied by exp(x). Chebyshev's series in x^2 - 2 for x up to 2,
in 8 / x - 2 beyond.
Source of the coefficients: S. Moshier, Cephes Mathematical Library, k0.c and k1.c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, coefficients, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import same_as

BOUND = 2
# each by order: 0 and 1; from the highest polynomial on
NEAR = (
    coefficients(
        """
        1.374465435613523e-16 4.25981614279661e-14 1.0349695257633842e-11 1.904516377220209e-09
        2.5347910790261494e-07 2.286212103119452e-05 0.001264615411446926 0.0359799365153615
        0.3442898999246285 -0.5353273932339028
        """
    ),
    coefficients(
        """
        -7.023863479386288e-18 -2.427449850519366e-15 -6.666901694199329e-13
        -1.4114883926335278e-10 -2.213387630734726e-08 -2.4334061415659684e-06
        -0.0001730288957513052 -0.006975723859639864 -0.12261118082265715 -0.3531559607765449
        1.5253002273389478
        """
    ),
)
FAR = (
    coefficients(
        """
        5.300433772686263e-18 -1.6475804301524212e-17 5.2103915050390274e-17
        -1.678231096805412e-16 5.512055978524319e-16 -1.848593377343779e-15 6.3400764774050706e-15
        -2.2275133269916698e-14 8.032890775363575e-14 -2.9800969231727303e-13
        1.140340588208475e-12 -4.514597883373944e-12 1.8559491149547177e-11 -7.957489244477107e-11
        3.577397281400301e-10 -1.69753450938906e-09 8.574034017414225e-09 -4.660489897687948e-08
        2.766813639445015e-07 -1.8317555227191195e-06 1.39498137188765e-05 -0.00012849549581627802
        0.0015698838857300533 -0.0314481013119645 2.4403030820659555
        """
    ),
    coefficients(
        """
        -5.756744483665017e-18 1.7940508731475592e-17 -5.689462558442859e-17 1.838093544366639e-16
        -6.057047248373319e-16 2.038703165624334e-15 -7.019837090418314e-15 2.4771544244813043e-14
        -8.976705182324994e-14 3.3484196660784293e-13 -1.2891739609510289e-12 5.13963967348173e-12
        -2.1299678384275683e-11 9.218315187605006e-11 -4.1903547593418965e-10
        2.015049755197033e-09 -1.0345762465678097e-08 5.7410841254500495e-08
        -3.5019606030878126e-07 2.406484947837217e-06 -1.936197974166083e-05
        0.00019521551847135162 -0.002857816859622779 0.10392373657681724 2.7206261904844427
        """
    ),
)
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
