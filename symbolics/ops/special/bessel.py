"""Modified Bessel functions of the first kind: aten::i0, special_i0e, special_i1 and special_i1e.

Those with an e are multiplied by exp(-|x|).
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.results import same_as

Array = np.ndarray

# Polynomials by order: I(x) / x^order in x^2 for |x| < 5, and exp(-x) sqrt(x) I(x) in 1 / x beyond.
# Interpolated at Chebyshev's nodes, relative errors below 3e-8.
BOUND = 5
NEAR = (
    (
        *(1.323946379e-14, 2.212530459e-12, 4.758826062e-10, 6.774311667e-08, 6.782327814e-06),
        *(0.0004340246301, 0.01562500769, 0.2499999928, 1.000000001),
    ),
    (
        *(2.118914855e-13, 3.099795529e-11, 5.708693377e-09, 6.774874508e-07, 5.425784287e-05),
        *(0.002604152938, 0.06250001639, 0.4999999968),
    ),
)
FAR = (
    (
        *(-28.81027257, 18.14020504, -3.923737664, 0.4820113763, 0.004980633861, 0.0286864475),
        *(0.04986158346, 0.3989422901),
    ),
    (
        *(126.2092532, -71.44207467, 14.07550697, -1.541406323, 0.01734405469, -0.04292628541),
        *(-0.04672503991, -0.1496034925, 0.3989422806),
    ),
)
# name: (order, whether it is multiplied by exp(-|x|))
TABLE = {"i0": (0, False), "special_i0e": (0, True), "special_i1": (1, False), "special_i1e": (1, True)}
LIMIT, TERMS = 30, 80  # of the power series in the kernel; beyond, the asymptotic series is exact


def _scaled(x: Array, order: int) -> Array:
    """exp(-x) I(x) for non-negative x. Source: Abramowitz and Stegun, 9.6.10 and 9.7.1."""
    near, far = np.minimum(x, LIMIT), np.maximum(x, LIMIT)
    term = total = (near / 2) ** order
    for k in range(1, TERMS):
        term = term * (near * near / 4) / (k * (k + order))
        total = total + term
    tail = rest = np.ones_like(x)
    for k in range(1, LIMIT):
        tail = -tail * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * far)
        rest = rest + tail
    return np.where(x < LIMIT, total * np.exp(-near), rest / np.sqrt(2 * math.pi * far))


def _op(name: str) -> Op:
    order, is_scaled = TABLE[name]
    op = Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY)

    @op.reference
    def bessel_ref(x: Array) -> Array:
        size = np.abs(x.astype(np.float64))
        result = _scaled(size, order) * (1 if is_scaled else np.exp(size))
        return (np.copysign(result, x) if order else result).astype(x.dtype)

    @formula(op)
    def bessel(x: Term) -> Term:
        size = x.abs()
        is_near = size < BOUND
        inside, outside = is_near.where(size, BOUND), is_near.where(BOUND, size)
        near = (inside * inside).horner(NEAR[order]) * (inside if order else 1)
        near = near * (-inside).exp() if is_scaled else near
        far = (1 / outside).horner(FAR[order]) / outside.sqrt()
        far = far if is_scaled else far * outside.exp()
        result = is_near.where(near, far)
        return x.sign() * result if order else result

    return op


OPS = [_op(name) for name in TABLE]
