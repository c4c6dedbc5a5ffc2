"""Functions related to gamma: aten::lgamma, digamma and polygamma.

The formulas compute in the type of their argument, halves in float32: where results are not near 0,
nothing subtracts near numbers from each other. What a type takes stands in ``DIGITS``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer
from tmconvert.symbolics.results import same_as

Array = np.ndarray

# Bernoulli's numbers B2, B4, ... of the asymptotic series
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)
STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, start=1)]
# by element type: (the number from which on these six terms are exact, how many terms around 2 are)
DIGITS = {"float32": (4, 12), "float64": (10, 26)}
SHIFT = DIGITS["float64"][0]

lgamma, digamma = (
    Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY)
    for name in ("lgamma", "digamma")
)


def _derived(n: int, x: TensorType) -> TensorType:
    if n < 0:
        raise ValueError(f"polygamma requires an order of at least 0, got {n}")
    return x


polygamma = Op("aten::polygamma", args=[integer("n"), Tensor("x", FLOATS)], result=_derived, layout=ANY)
OPS = [lgamma, digamma, polygamma]


def precise(x: Term) -> Term:
    """Casts ``x`` to a type with ``DIGITS``."""
    return x.to(np.promote_types(x.dtype, np.float32))


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluates a polynomial of Terms, arrays or numbers, from the lowest power on."""
    result: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = x * result + coefficient
    return result


@lgamma.reference
def lgamma_ref(x: Array) -> Array:
    """log |gamma(x)|, infinite at 0, -1, -2, ..."""

    def one(number: float) -> float:
        is_pole = number <= 0 and (math.isinf(number) or number == int(number))
        return math.inf if is_pole else math.lgamma(number)

    return np.vectorize(one, otypes=[x.dtype])(x.astype(np.float64))


def _sides(x: Term, bound: float) -> tuple[Term, Term, Term, Term]:
    """Returns whether ``x`` is below ``bound``, whether it is at a pole, and a safe operand for each side.

    Poles are given out as such at the end, explicitly: LiteRT's own kernels make no infinities.
    """
    is_left = x < bound
    is_pole = (x <= 0) & x.eq(x.floor())
    left = (is_left & ~is_pole).where(x, -0.25)
    return is_left, is_pole, left, (is_left | is_pole).where(1 - left, x)


@formula(lgamma)
def lgamma_in_parts(x: Term) -> Term:
    """For negative numbers log(pi / |sin(pi x)|) - lgamma(1 - x)."""
    y = precise(x)
    is_left, is_pole, left, right = _sides(y, 0.5)
    result = _log_gamma(right)
    mirrored = math.log(math.pi) - _sine(left).abs().log() - result
    result = is_left.where(mirrored, result)
    return (is_pole | y.eq(np.inf)).where(np.inf, result).to(x.dtype)


def _log_gamma(z: Term) -> Term:
    """For numbers from 0.5 on: Stirling's series; below it Taylor's series around 2, shifted by a product."""
    first, terms = DIGITS[z.dtype.name]
    is_far = z >= first - 0.5
    near, far = is_far.where(2, z), is_far.where(z, first)
    is_above = near >= 1.5
    whole, product = is_above.to(z.dtype) + 1, is_above.where(1, near)
    for k in range(2, first):
        above = near >= k + 0.5
        whole = whole + above.to(z.dtype)
        product = product * above.where(near - (k - 1), 1)
    t, log = near - whole, product.log()
    taylor = [1 - np.euler_gamma, *((-1) ** k * _zeta(k, 2.0, SHIFT) / k for k in range(2, terms + 1))]
    small = t * _polynomial(t, taylor) + is_above.where(log, -log)
    return is_far.where(stirling(far), small)


def stirling(z: Term) -> Term:
    """log(gamma(z)) of large z, by Stirling's formula."""
    return (z - 0.5) * (z.log() - 1) + rest_of_stirling(z) + (math.log(2 * math.pi) - 1) / 2


def rest_of_stirling(z: Term) -> Term:
    inverse = 1 / z
    return inverse * _polynomial(inverse * inverse, STIRLING)


def _sine(x: Term) -> Term:
    """|sin(pi x)|, accurate near integers."""
    return ((x - x.round()) * math.pi).sin()


def _cotangent(x: Term) -> Term:
    """cot(pi x), accurate near integers and half-integers."""
    fraction = x - x.round()
    return ((0.5 - fraction.abs()) * math.pi).sin() / (fraction * math.pi).sin()


def _zeta(s: int, x: Any, shift: int) -> Any:
    """Hurwitz's zeta of positive ``x``, the sum of (x + i) ^ -s over i = 0, 1, ... by Euler and Maclaurin."""
    result = sum(((x + i) ** -s for i in range(1, shift)), x**-s)
    far = x + shift
    rising = (math.prod(range(s, s + 2 * k - 1)) / math.factorial(2 * k) for k in range(1, 7))
    series = [bernoulli * factor for bernoulli, factor in zip(BERNOULLI, rising, strict=True)]
    inverse = 1 / far
    tail = inverse * (_polynomial(inverse * inverse, series) * inverse + 0.5) + 1 / (s - 1)
    return result + far ** (1 - s) * tail


def _digamma_right(x: Any, log: Any, shift: int) -> Any:
    """digamma of positive numbers; infinite at zero, with its sign."""
    far = x + shift
    square = 1 / (far * far)
    series = _polynomial(square, [b / (2 * k) for k, b in enumerate(BERNOULLI, start=1)]) * square
    return log(far) - 0.5 / far - series - sum((1 / (x + i) for i in range(1, shift)), 1 / x)


@digamma.reference
def digamma_ref(x: Array) -> Array:
    """-inf at 0 (inf at -0), NaN at -1, -2, ..."""
    y = x.astype(np.float64)
    angle = (y - np.rint(y)) * np.pi
    mirrored = _digamma_right(np.where(y < 0, 1 - y, 1), np.log, SHIFT) - np.pi / np.tan(angle)
    right = _digamma_right(np.abs(y), np.log, SHIFT)
    result = np.where(y < 0, np.where(angle == 0, np.nan, mirrored), right)
    return np.where(y == 0, -np.copysign(np.inf, y), result).astype(x.dtype)


@formula(digamma)
def digamma_series(x: Term) -> Term:
    y = precise(x)
    is_left, is_pole, left, right = _sides(y, 0)
    shift, _ = DIGITS[y.dtype.name]
    result = _digamma_right(right, lambda term: term.log(), shift)
    result = is_left.where(result - _cotangent(left) * math.pi, result)
    result = (is_left & is_pole).where(np.nan, y.eq(np.inf).where(np.inf, result))
    is_zero, is_below = y.eq(0), 1 / y < 0
    result = (is_zero & is_below).where(np.inf, result)
    return (is_zero & ~is_below).where(-np.inf, result).to(x.dtype)


def _mirror(n: int) -> list[float]:
    """Coefficients of the polynomial in c = cot(pi x) that is the derivative ``n`` of pi c, lowest power
    first.

    >>> _mirror(1)  # -pi^2 (1 + c^2)
    [-9.869604401089358, -0.0, -9.869604401089358]
    """
    polynomial = np.polynomial.Polynomial([0.0, math.pi])
    for _ in range(n):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([-math.pi, 0.0, -math.pi])
    return list(map(float, polynomial.coef))


def _scale(n: int) -> float:
    return (-1.0) ** (n + 1) * math.factorial(n)


@polygamma.reference
def polygamma_ref(n: int, x: Array) -> Array:
    """The derivative ``n`` of digamma; at poles infinite, with the sign of the right-hand limit."""
    if n == 0:
        return digamma_ref(x)
    y = x.astype(np.float64)
    angle = (y - np.rint(y)) * np.pi
    right = _scale(n) * _zeta(n + 1, np.where(y < 0, 1 - y, y), SHIFT)
    mirrored = right * (-1) ** n - _polynomial(1 / np.tan(angle), _mirror(n))
    result = np.where(y < 0, mirrored, right)
    return np.where((y <= 0) & (angle == 0), _scale(n) * np.inf, result).astype(x.dtype)


@formula(polygamma)
def polygamma_zeta(n: int, x: Term) -> Term:
    if n == 0:
        return x.digamma()
    y = precise(x)
    is_left, is_pole, left, right = _sides(y, 0)
    shift, _ = DIGITS[y.dtype.name]
    result = _zeta(n + 1, right, shift) * _scale(n)
    mirrored = result * (-1) ** n - _polynomial(_cotangent(left), _mirror(n))
    return is_pole.where(_scale(n) * np.inf, is_left.where(mirrored, result)).to(x.dtype)
