"""aten::special_airy_ai, the solution of y'' = x y that vanishes for large x.

The power series around 0, beyond it rational functions: of a decay to the right, of the modulus and the
phase of a wave to the left. As in torch's kernel, the first coefficient of the divisors to the left, 1 in
Cephes, is left out, and infinities give NaN.
Source of the coefficients: S. Moshier, Cephes Mathematical Library, airy.c.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, coefficients, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import same_as

BOUND = 2.09
LAST = 103.892  # beyond, the result is 0
TERMS = 14  # of the power series, exact up to BOUND
AT_ZERO, SLOPE = 0.355028053887817239260, 0.258819403792806798405  # Ai(0) and -Ai'(0)
RIGHT = coefficients(
    """
    0.346538101525629 12.007595273964581 76.27960536152345 168.08922493463058 159.75639135016442
    70.53609068404442 14.026469116338967 1.0
    """
)
RIGHT_DIVISOR = coefficients(
    """
    0.5675945326387702 14.75625625848472 84.51389701414746 177.31808814540045 164.2346928715297
    71.47784008255756 14.095913560783403 1.0
    """
)
LEFT_F = coefficients(
    """
    -0.1316963234183318 -0.6264565444319123 -0.6931580360369335 -0.2797799815451191
    -0.04919001326095003 -0.004062659235948854 -0.0001592764962392621 -2.776491081552329e-06
    -1.6778769848911465e-08
    """
)
LEFT_F_DIVISOR = coefficients(
    """
    13.356042070655324 32.682503279522464 26.736704094149957 9.187074029072596 1.4752914677166642
    0.11568717379518804 0.004402916416152112 7.547203482874142e-05 4.5185009297058035e-07
    """
)
LEFT_G = coefficients(
    """
    0.01973399320916857 0.39110302961568827 1.0657989759959559 0.9391692298166502 0.35146565610554764
    0.06338889196289255 0.005858041130483885 0.000282851600836737 6.98793669997261e-06
    8.117892395543892e-08 3.415517847659236e-10
    """
)
LEFT_G_DIVISOR = coefficients(
    """
    9.30892908077442 19.835292871831214 15.564662893286462 5.476860694229755 0.9542936116189619
    0.08645808263523921 0.004126565238242226 0.00010125908511650914 1.1716673321441352e-06
    4.9183457006293e-09
    """
)

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
