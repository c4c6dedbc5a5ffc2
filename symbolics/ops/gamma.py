"""The gamma function's relatives: aten::lgamma, digamma and polygamma.

The formulas compute in float64, in which the differences of near numbers still hold the digits of float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import TensorType
from ..idioms.formulas import Term, formula
from ..layouts import ANY
from ..op import FLOATS, Op, Tensor, integer
from ..results import same_as

Array = np.ndarray

# Source: C. Lanczos, "A precision approximation of the gamma function", 1964; g = 7, 9 terms.
LANCZOS_G = 7
LANCZOS = (
    *(0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313),
    *(-176.61502916214059, 12.507343278686905, -0.13857109526572012),
    *(9.9843695780195716e-6, 1.5056327351493116e-7),
)
# Bernoulli's numbers B2, B4, ... of the asymptotic series, whose six terms are exact to 1e-13 from SHIFT on
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)
SHIFT = 10

lgamma, digamma = (
    Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY)
    for name in ("lgamma", "digamma")
)


def _derived(n: int, x: TensorType) -> TensorType:
    if n < 0:
        raise ValueError(f"there is no derivative of order {n}")
    return x


polygamma = Op("aten::polygamma", args=[integer("n"), Tensor("x", FLOATS)], result=_derived, layout=ANY)
OPS = [lgamma, digamma, polygamma]

for _op in OPS:
    _op.unsupported("caffe", "it computes in float32, in which the digits are lost")
    _op.unsupported("tflite", "its operators compute in float32, in which the digits are lost")


@lgamma.reference
def lgamma_ref(x: Array) -> Array:
    """log |gamma(x)|, infinite at 0, -1, -2, ..."""

    def one(number: float) -> float:
        is_pole = number <= 0 and (math.isinf(number) or number == int(number))
        return math.inf if is_pole else math.lgamma(number)

    return np.vectorize(one, otypes=[x.dtype])(x.astype(np.float64))


@formula(lgamma)
def lgamma_lanczos(x: Term) -> Term:
    """For negative numbers log(pi / |sin(pi x)|) - lgamma(1 - x)."""
    y = x.to(np.float64)
    is_left = y < 0.5
    right = is_left.where(1 - y, y)
    series = sum((c / (right + (i - 1)) for i, c in enumerate(LANCZOS) if i), right.like(LANCZOS[0]))
    base = right - 0.5
    result = base * ((base + LANCZOS_G).log() - 1) + series.log() + (math.log(2 * math.pi) / 2 - LANCZOS_G)
    mirrored = math.log(math.pi) - _sine(y).abs().log() - result
    return y.abs().eq(np.inf).where(np.inf, is_left.where(mirrored, result)).to(x.dtype)


def _sine(x: Term) -> Term:
    """sin(pi x) but for its sign, exact near whole numbers."""
    return ((x - x.round()) * math.pi).sin()


def _cotangent(x: Term) -> Term:
    """cot(pi x), infinite for whole numbers."""
    angle = (x - x.round()) * math.pi
    return angle.cos() / angle.sin()


def _zeta(s: int, x: Any) -> Any:
    """Hurwitz's zeta of positive ``x``, the sum of (x + i) ^ -s over i = 0, 1, ... by Euler and Maclaurin."""
    far = x + SHIFT
    result = sum(((x + i) ** -s for i in range(1, SHIFT)), x**-s)
    result = result + far ** (1 - s) * (1 / (s - 1)) + far**-s * 0.5
    for k, bernoulli in enumerate(BERNOULLI, start=1):
        rising = math.prod(range(s, s + 2 * k - 1))
        result = result + far ** (1 - s - 2 * k) * (bernoulli * rising / math.factorial(2 * k))
    return result


def _digamma_right(x: Any, log: Any) -> Any:
    """digamma of positive numbers; infinite at zero, whose sign counts."""
    far = x + SHIFT
    square = 1 / (far * far)
    series: Any = 0
    for k in range(len(BERNOULLI), 0, -1):
        series = (series + BERNOULLI[k - 1] / (2 * k)) * square
    return log(far) - 0.5 / far - series - sum((1 / (x + i) for i in range(1, SHIFT)), 1 / x)


@digamma.reference
def digamma_ref(x: Array) -> Array:
    """Minus infinity at 0 (infinity at -0), not a number at -1, -2, ..."""
    y = x.astype(np.float64)
    angle = (y - np.rint(y)) * np.pi
    mirrored = _digamma_right(np.where(y < 0, 1 - y, 1), np.log) - np.pi / np.tan(angle)
    result = np.where(y < 0, np.where(angle == 0, np.nan, mirrored), _digamma_right(np.abs(y), np.log))
    return np.where(y == 0, -np.copysign(np.inf, y), result).astype(x.dtype)


@formula(digamma)
def digamma_series(x: Term) -> Term:
    y = x.to(np.float64)
    negative = y < 0
    right = _digamma_right(negative.where(1 - y, y), lambda term: term.log())
    cotangent = _cotangent(y)
    mirrored = cotangent.abs().eq(np.inf).where(np.nan, right - cotangent * math.pi)
    return negative.where(mirrored, right).to(x.dtype)


def _derivative_of_cotangent(n: int) -> Array:
    """Coefficients, from the highest power on, of the polynomial in c = cot(x) that its derivative n is.

    >>> _derivative_of_cotangent(1)  # -c^2 - 1
    array([-1.,  0., -1.])
    """
    polynomial = np.poly1d([1.0, 0.0])
    for _ in range(n):
        polynomial = polynomial.deriv() * np.poly1d([-1.0, 0.0, -1.0])
    return np.asarray(polynomial.coeffs)


def _mirror(n: int, right: Any, cotangent: Any) -> Any:
    """The derivative n of digamma at x, from that at 1 - x and cot(pi x)."""
    result: Any = 0
    for coefficient in _derivative_of_cotangent(n) * math.pi ** (n + 1):
        result = result * cotangent + float(coefficient)
    return right * (-1) ** n - result


@polygamma.reference
def polygamma_ref(n: int, x: Array) -> Array:
    """The derivative ``n`` of digamma; at its poles infinite, with the sign that it has to the right."""
    if n == 0:
        return digamma_ref(x)
    y, scale = x.astype(np.float64), (-1.0) ** (n + 1) * math.factorial(n)
    angle = (y - np.rint(y)) * np.pi
    right = scale * _zeta(n + 1, np.where(y < 0, 1 - y, y))
    result = np.where(y < 0, _mirror(n, right, 1 / np.tan(angle)), right)
    return np.where((y <= 0) & (angle == 0), scale * np.inf, result).astype(x.dtype)


@formula(polygamma)
def polygamma_zeta(n: int, x: Term) -> Term:
    if n == 0:
        return x.digamma()
    y, scale = x.to(np.float64), (-1.0) ** (n + 1) * math.factorial(n)
    negative = y < 0
    right = _zeta(n + 1, negative.where(1 - y, y)) * scale
    cotangent = _cotangent(y)
    is_pole = cotangent.abs().eq(np.inf) & (y <= 0)
    return is_pole.where(scale * np.inf, negative.where(_mirror(n, right, cotangent), right)).to(x.dtype)
