"""Bessel functions: aten::special_bessel_j0, j1, y0 and y1, of the first and of the second kind.

Rational functions of x^2 up to 5, beyond it those of the modulus and the phase of a wave. As in torch's
kernels, the first coefficient of the divisors, 1 in Cephes, is left out, and the phase is rounded to the
element type.
Source of the coefficients: S. Moshier, Cephes Mathematical Library, j0.c and j1.c.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.cephes import coefficients
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import same_as

BOUND = 5
ZEROS = ((5.783185962946785, 30.471262343662087), (14.681970642123893, 49.2184563216946))  # of J, squared
# each by order: 0 and 1
NEAR_J, NEAR_J_DIVISOR = (
    coefficients("near_j0", "near_j1"),
    coefficients("near_j_divisor0", "near_j_divisor1"),
)
NEAR_Y, NEAR_Y_DIVISOR = (
    coefficients("near_y0", "near_y1"),
    coefficients("near_y_divisor0", "near_y_divisor1"),
)
FAR_P, FAR_P_DIVISOR = coefficients("far_p0", "far_p1"), coefficients("far_p_divisor0", "far_p_divisor1")
FAR_Q, FAR_Q_DIVISOR = coefficients("far_q0", "far_q1"), coefficients("far_q_divisor0", "far_q_divisor1")
# name: (kind, order)
TABLE = {f"special_bessel_{kind}{order}": (kind, order) for kind in "jy" for order in (0, 1)}


def _near_j(order: int, x: Term) -> Term:
    square = x * x
    first, second = ZEROS[order]
    wave = (square - first) * (square - second)
    result = wave * (square.horner(NEAR_J[order]) / square.horner(NEAR_J_DIVISOR[order]))
    return result * x if order else result


def _near_y(order: int, x: Term) -> Term:
    square = x * x
    result = square.horner(NEAR_Y[order]) / square.horner(NEAR_Y_DIVISOR[order])
    wave = x.log() * _near_j(order, x)
    return result * x + (wave - 1 / x) * (2 / math.pi) if order else result + wave * (2 / math.pi)


def _far(kind: str, order: int, x: Term) -> Term:
    inverse = BOUND / x
    square = inverse * inverse
    p = square.horner(FAR_P[order]) / square.horner(FAR_P_DIVISOR[order])
    q = square.horner(FAR_Q[order]) / square.horner(FAR_Q_DIVISOR[order]) * inverse
    angle = x - (order + 0.5) * math.pi / 2
    wave = p * angle.cos() - q * angle.sin() if kind == "j" else p * angle.sin() + q * angle.cos()
    return wave * math.sqrt(2 / math.pi) / x.sqrt()


def _op(name: str) -> Op:
    kind, order = TABLE[name]
    op = Op(f"aten::{name}", args=[Tensor("x", ("float32", "float64"))], result=same_as("x"), layout=ANY)

    @formula(op, is_kernel=True)
    def bessel(x: Term) -> Term:
        size = x.abs() if kind == "j" else x
        is_near = size <= BOUND
        far = _far(kind, order, is_near.where(BOUND, size))
        if kind == "j":
            result = is_near.where(_near_j(order, is_near.where(size, 0)), far)
            return x.sign() * result if order else result
        near = _near_y(order, (is_near & (x > 0)).where(x, 1))
        result = is_near.where(near, far)
        return x.eq(0).where(-np.inf, (x < 0).where(np.nan, result))

    return op


OPS = [_op(name) for name in TABLE]
