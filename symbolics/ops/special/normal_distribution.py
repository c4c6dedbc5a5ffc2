"""Normal distribution functions by erfc: special_ndtr, special_log_ndtr, special_ndtri, special_erfcx."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.ops.special.erf import ERF, ERFCC, ERFCC_LOW
from tmconvert.symbolics.results import same_as

Array = np.ndarray
ROOT = math.sqrt(0.5)
FRACTION = 40  # terms of the continued fraction


def _erfc(x: Array) -> Array:
    kernel = ERF["erfc"].kernel
    assert kernel is not None
    return np.asarray(kernel(x))


def _erfcx(x: Array) -> Array:
    """exp(x^2) erfc(x). Source of the continued fraction for large x: Abramowitz and Stegun, 7.1.14."""
    far = np.maximum(x, 2)
    rest = far
    for k in range(FRACTION, 0, -1):
        rest = far + (k / 2) / rest
    near = np.minimum(x, 2)
    return np.where(x > 2, 1 / (rest * math.sqrt(math.pi)), np.exp(near * near) * _erfc(near))


def _log_ndtr(x: Array) -> Array:
    low, high = np.minimum(x, 0), np.maximum(x, 0)
    below = np.log(_erfcx(-low * ROOT) / 2) - low * low / 2
    return np.where(x < 0, below, np.log1p(-_erfc(high * ROOT) / 2))


def _ndtri(p: Array) -> Array:
    """Inverts log_ndtr by bisection for the lower tail."""
    tail = np.log(np.clip(np.minimum(p, 1 - p), 1e-300, 0.5))
    low, high = np.full_like(p, -40), np.zeros_like(p)
    for _ in range(60):
        middle = (low + high) / 2
        is_below = _log_ndtr(middle) < tail
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    result = np.where(p > 0.5, -high, high)
    result = np.where((p == 0) | (p == 1), np.where(p == 0, -np.inf, np.inf), result)
    return np.where((p >= 0) & (p <= 1), result, np.nan)


TABLE: dict[str, Callable[[Array], Array]] = {
    "special_ndtr": lambda x: _erfc(-x * ROOT) / 2,
    "special_log_ndtr": _log_ndtr,
    "special_ndtri": _ndtri,
    "special_erfcx": _erfcx,
}


def _op(name: str) -> Op:
    op = Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY)
    op.reference(lambda x: TABLE[name](x.astype(np.float64)).astype(x.dtype))
    return op


NORMAL = {name: _op(name) for name in TABLE}
OPS = list(NORMAL.values())


def _log_erfcx(z: Term) -> Term:
    """log(erfcx) of non-negative numbers."""
    t = 1 / (z * 0.5 + 1)
    return t.log() + t.horner((*ERFCC, *ERFCC_LOW))


formula(NORMAL["special_ndtr"])(lambda x: (x * -ROOT).erfc() * 0.5)


@formula(NORMAL["special_log_ndtr"])
def log_ndtr(x: Term) -> Term:
    low = -(-x).relu()
    below = _log_erfcx(low * -ROOT) - low * low * 0.5 - math.log(2)
    return (x < 0).where(below, (x.relu() * ROOT).erfc().mul(-0.5).log1p())


@formula(NORMAL["special_erfcx"])
def erfcx(x: Term) -> Term:
    right = _log_erfcx(x.abs()).exp()
    return (x < 0).where((x * x).exp() * 2 - right, right)


@formula(NORMAL["special_ndtri"])
def ndtri(x: Term) -> Term:
    """Approximates the lower tail (Abramowitz and Stegun, 26.2.23), then two Newton steps on log_ndtr."""
    tail = (x < 0.5).where(x, 1 - x)
    log = (tail.relu() + float(np.finfo(x.dtype).tiny)).log()
    t = (log * -2).sqrt()
    y = t.horner((0.010328, 0.802853, 2.515517)) / t.horner((0.001308, 0.189269, 1.432788, 1)) - t
    for _ in range(2):
        ratio = _log_erfcx((y * -ROOT).relu()).exp() * math.sqrt(math.pi / 2)
        y = y - (y.call("special_log_ndtr") - log) * ratio
    y = (tail < 0).where(np.nan, y * (1 - (x > 0.5).to(x.dtype) * 2))
    return x.eq(0).where(-np.inf, x.eq(1).where(np.inf, y))
