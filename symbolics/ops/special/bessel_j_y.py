"""Bessel functions: aten::special_bessel_j0, j1, y0 and y1, of the first and of the second kind.

Rational functions of x^2 up to 5, beyond it those of the modulus and the phase of a wave. As in torch's
kernels, the first coefficient of the divisors, 1 in Cephes, is left out, and the phase is rounded to the
element type.
Source of the coefficients: S. Moshier, Cephes Mathematical Library, j0.c and j1.c.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, coefficients, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.results import same_as

BOUND = 5
ZEROS = ((5.783185962946785, 30.471262343662087), (14.681970642123893, 49.2184563216946))  # of J, squared
# each by order: 0 and 1
NEAR_J = (
    coefficients("-4794432209.782018 1956174919465.5657 -249248344360967.72 9708622510473064.0"),
    coefficients("-899971225.7055594 452228297998.19403 -72749424522181.83 3682957328638529.0"),
)
NEAR_J_DIVISOR = (
    coefficients(
        """
        499.563147152651 173785.4016763747 48440965.83399621 11185553704.535683 2112775201154.892
        310518229857422.56 3.1812195594320496e+16 1.7108629408104315e+18
        """
    ),
    coefficients(
        """
        620.8364781180543 256987.25675774884 83514679.14319493 22151159547.97925 4749141220799.914
        784369607876235.9 8.952223361846274e+16 5.322786203326801e+18
        """
    ),
)
NEAR_Y = (
    coefficients(
        """
        15592.436785523574 -14663929.59039716 5435264770.518765 -982136065717.9115
        87590639439536.7 -3466283033847297.0 4.4273326857256984e+16 -1.8495080043698668e+16
        """
    ),
    coefficients(
        """
        1263204747.9017804 -647355876379.1603 114509511541823.73 -8127702555013251.0
        2.024394757135949e+17 -7.788771962659501e+17
        """
    ),
)
NEAR_Y_DIVISOR = (
    coefficients(
        """
        1041.2835366425984 626107.330137135 268919633.39381415 86400248710.3935 20297961275010.555
        3171577528429750.5 2.5059625617265306e+17
        """
    ),
    coefficients(
        """
        594.3015923461282 235564.09294306856 73481194.44597217 18760131610.870617
        3882312774962.3857 620557727146953.8 6.871410873553005e+16 3.9727060811656064e+18
        """
    ),
)
FAR_P = (
    coefficients(
        """
        0.0007969367292973471 0.08283523921074408 1.239533716464143 5.447250030587687
        8.74716500199817 5.303240382353949 1.0
        """
    ),
    coefficients(
        """
        0.0007621256162081731 0.07313970569409176 1.1271960812968493 5.112079511468076
        8.424045901417724 5.214515986823615 1.0
        """
    ),
)
FAR_P_DIVISOR = (
    coefficients(
        """
        0.0009244088105588637 0.08562884743544745 1.2535274390105895 5.470977403304171
        8.761908832370695 5.306052882353947 1.0
        """
    ),
    coefficients(
        """
        0.0005713231280725487 0.06884559087544954 1.105142326340617 5.073863861286015
        8.399855543276042 5.209828486823619 1.0
        """
    ),
)
FAR_Q = (
    coefficients(
        """
        -0.011366383889846916 -1.2825271867050931 -19.553954425773597 -93.20601521237683
        -177.68116798048806 -147.07750515495118 -51.41053267665993 -6.050143506007285
        """
    ),
    coefficients(
        """
        0.05108625947501766 4.982138729512334 75.82382841325453 366.7796093601508
        710.8563049989261 597.4896124006136 211.68875710057213 25.207020585802372
        """
    ),
)
FAR_Q_DIVISOR = (
    coefficients(
        """
        64.3178256118178 856.4300259769806 3882.4018360540163 7240.467741956525 5930.727011873169
        2062.0933166032783 242.0057402402914
        """
    ),
    coefficients(
        """
        74.23732770356752 1056.4488603826283 4986.410583376536 9562.318924047562 7997.041604473507
        2826.1927851763908 336.0936078106983
        """
    ),
)
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
