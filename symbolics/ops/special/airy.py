"""aten::special_airy_ai, the solution of y'' = x y that vanishes for large x.

The power series around 0, beyond it rational functions: of a decay to the right, of the modulus and the
phase of a wave to the left. As in torch's kernel, the first coefficient of the divisors to the left, 1 in
Cephes, is left out, and infinities give NaN.
Source of the coefficients: S. Moshier, Cephes Mathematical Library, airy.c.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.cephes import coefficients
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import same_as

BOUND = 2.09
LAST = 103.892  # beyond, the result is 0
TERMS = 14  # of the power series, exact up to BOUND
AT_ZERO, SLOPE = 0.355028053887817239260, 0.258819403792806798405  # Ai(0) and -Ai'(0)
RIGHT, RIGHT_DIVISOR = coefficients("airy_right", "airy_right_divisor")
LEFT_F, LEFT_F_DIVISOR = coefficients("airy_left_f", "airy_left_f_divisor")
LEFT_G, LEFT_G_DIVISOR = coefficients("airy_left_g", "airy_left_g_divisor")

special_airy_ai = Op(
    "aten::special_airy_ai", args=[Tensor("x", ("float32", "float64"))], result=same_as("x"), layout=ANY
)


def _series(x: Term) -> Term:
    """Source: Abramowitz and Stegun, 10.4.2 and 10.4.3."""
    even = [1 / math.prod((3 * i - 1) * 3 * i for i in range(1, k + 1)) for k in range(TERMS)]
    odd = [1 / math.prod(3 * i * (3 * i + 1) for i in range(1, k + 1)) for k in range(TERMS)]
    cube = x * x * x
    return cube.horner(even[::-1]) * AT_ZERO - cube.horner(odd[::-1]) * x * SLOPE


def _left(x: Term) -> Term:
    """The function at -x, for positive x."""
    root = x.sqrt()
    phase = x * 2 * root / 3
    z = 1 / phase
    square = z * z
    f = square * square.horner(LEFT_F) / square.horner(LEFT_F_DIVISOR) + 1
    g = z * square.horner(LEFT_G) / square.horner(LEFT_G_DIVISOR)
    angle = phase + math.pi / 4
    return (angle.sin() * f - angle.cos() * g) / root.sqrt() / math.sqrt(math.pi)


def _right(x: Term) -> Term:
    root = x.sqrt()
    exponent = x * 2 * root / 3
    z = 1 / exponent
    ratio = z.horner(RIGHT) / z.horner(RIGHT_DIVISOR)
    return ratio * (-exponent).exp() / root.sqrt() * (0.5 / math.sqrt(math.pi))


@formula(special_airy_ai, is_kernel=True)
def airy_ai(x: Term) -> Term:
    is_left, is_right = x < -BOUND, x >= BOUND
    left = _left(is_left.where(-x, BOUND))
    right = _right((is_right & (x <= LAST)).where(x, BOUND))
    near = _series((is_left | is_right).where(0, x))
    result = is_left.where(left, is_right.where((x > LAST).where(0, right), near))
    return x.abs().eq(np.inf).where(np.nan, result)
