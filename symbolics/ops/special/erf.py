"""The error function and related functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import Bounded

Array = np.ndarray

# Taylor series of erfc around the nearest multiple of STEP; beyond REACH it is less than float64 holds
STEP = 1 / 64
REACH = 28
KNOTS = np.arange(-6, REACH + STEP, STEP)
ERFC = np.array([math.erfc(knot) for knot in KNOTS])
SLOPES = np.exp(-(KNOTS**2)) * (2 / math.sqrt(math.pi))  # of erf
ORDER = 8
BLOCK = 1 << 13


def _taylor(x: Array) -> tuple[Array, Array]:
    """(erfc at the nearest knot, erf(x) minus erf at that knot) for float64 numbers."""
    x = np.clip(x, KNOTS[0], REACH)
    index = np.rint((np.nan_to_num(x) - KNOTS[0]) / STEP).astype(np.int64)
    knot = KNOTS[index]
    d = x - knot
    # derivatives of exp(-t^2) are exp(-t^2) times (-1)^n H_n(t), Hermite's polynomials
    before, polynomial, total, power = np.zeros_like(d), np.ones_like(d), d, d
    for n in range(1, ORDER):
        before, polynomial = polynomial, -2 * knot * polynomial - 2 * (n - 1) * before
        power = power * d / (n + 1)
        total = total + polynomial * power
    return ERFC[index], SLOPES[index] * total


def _in_blocks(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Computes a function of each element for as many as stay in the cache of a processor at a time."""

    def of_all(x: Array) -> Array:
        flat = np.asarray(x, np.float64).reshape(-1)
        made = np.empty_like(flat)
        for start in range(0, flat.size, BLOCK):
            made[start : start + BLOCK] = function(flat[start : start + BLOCK])
        return made.reshape(x.shape)

    return of_all


@_in_blocks
def _erf(x: Array) -> Array:
    at_knot, rest = _taylor(np.abs(x))
    return np.sign(x) * ((1 - at_knot) + rest)


@_in_blocks
def _erfc(x: Array) -> Array:
    at_knot, rest = _taylor(x)
    return at_knot - rest


# Central and tail coefficients. Source: M. Giles, "Approximating the erfinv function", single precision.
CENTRAL = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)


def _erfinv(x: Array) -> Array:
    y = x.astype(np.float64)
    w = np.clip(-np.log1p(-y * y), 0, 700)
    guess = y * np.where(w < 5, np.polyval(CENTRAL, w - 2.5), np.polyval(TAIL, np.sqrt(w) - 3))
    for _ in range(2):  # Newton; in the tail erfc keeps the digits
        error = np.where(
            np.abs(y) < 0.5, _erf(guess) - y, np.sign(y) * (1 - np.abs(y) - _erfc(np.abs(guess)))
        )
        guess = guess - error * np.exp(guess**2) * (math.sqrt(math.pi) / 2)
    guess = np.where(np.abs(y) < 1, guess, np.nan)
    return np.where(np.abs(y) == 1, np.copysign(np.inf, y), guess)


TABLE: dict[str, Callable[[Array], Array]] = {"erf": _erf, "erfc": _erfc, "erfinv": _erfinv}


def _op(name: str) -> Op:
    traits = [Bounded(-1, 1)] if name == "erf" else []
    op = Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY, traits=traits)
    op.reference(lambda x: TABLE[name](x).astype(x.dtype))
    return op


ERF = {name: _op(name) for name in TABLE}
OPS = list(ERF.values())
ERF["erf"].onnx(since=9)(lambda g, x: g.op("Erf", x))

# log(erfc(z) / t) + z^2 in t = 1 / (1 + z / 2), relative error 1.2e-7.
# Source: W. Press et al., "Numerical Recipes", section 6.2, erfcc.
ERFCC = (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196)
ERFCC_LOW = (1.00002368, -1.26551223)


def _upper(z: Term) -> Term:
    """erfc of non-negative numbers."""
    t = 1 / (z * 0.5 + 1)
    return t * (t.horner((*ERFCC, *ERFCC_LOW)) - z * z).exp()


formula(ERF["erf"])(lambda x: x.sign() * (1 - _upper(x.abs())))


@formula(ERF["erfc"])
def erfc(x: Term) -> Term:
    below = (x < 0).to(x.dtype)
    return below * 2 + (1 - below * 2) * _upper(x.abs())


@formula(ERF["erfinv"])
def erfinv(x: Term) -> Term:
    w = -((1 - x) * (x + 1)).log()
    central = (w.clamp(max=5) - 2.5).horner(CENTRAL)
    tail = (w.clamp(min=5, max=88).sqrt() - 3).horner(TAIL)
    finite = x * (w < 5).where(central, tail)
    return x.abs().eq(1).where(x * np.inf, finite)
