"""Elementwise functions of one operand; integer operands are converted to float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import cast, floating, kind_of
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

ATEN = Table()
METHODS = Table()

# names that the catalogue and torch share, and those for which torch has others
_PLAIN = """
    cos cosh deg2rad exp log log10 log2 rad2deg reciprocal rsqrt sin sinh special_airy_ai special_bessel_j0
    special_bessel_j1 special_bessel_y0 special_bessel_y1 special_entr special_erfcx special_i0e special_i1e
    special_log_ndtr special_modified_bessel_k0 special_modified_bessel_k1 special_ndtr special_ndtri
    special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 sqrt tan tanh
"""
FLOATING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_PLAIN.split(), ()),
    **{name: (f"arc{name[1:]}",) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh")},
    **{name: (f"special_{name}",) for name in ("erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "sinc")},
    "digamma": ("special_digamma", "special_psi"),
    "i0": ("special_i0", "special_modified_bessel_i0"),
    "lgamma": ("special_gammaln",),
    "sigmoid": ("special_expit",),
    "special_i1": ("special_modified_bessel_i1",),
}

for _name, _others in FLOATING.items():

    def _floating(g: Emitter, input, _name: str = _name) -> Any:
        return g.call(f"aten::{_name}", floating(g, input))

    ATEN.add(_name, *_others)(_floating)

for _name, _others in {"floor": (), "ceil": (), "trunc": ("fix",)}.items():

    def _whole(g: Emitter, input, _name: str = _name) -> Any:
        return input if kind_of(g.type(input).dtype) < 2 else g.call(f"aten::{_name}", input)

    ATEN.add(_name, *_others)(_whole)


@ATEN.add("round", "special_round")
def round_(g, input, *, decimals=0):
    dtype = g.type(input).dtype
    if kind_of(dtype) < 2:
        return input
    if not decimals:
        return g.call("aten::round", input)
    scale = g.constant(10.0 ** abs(decimals), dtype)
    up, down = ("aten::mul", "aten::div") if decimals > 0 else ("aten::div", "aten::mul")
    return g.call(down, g.call("aten::round", g.call(up, input, scale)), scale)


ATEN.add("abs", "absolute", "__abs__")(lambda g, input: g.call("aten::abs", input))
ATEN.add("neg", "negative", "__neg__")(lambda g, input: g.call("aten::neg", input))


@ATEN.add("sign", "sgn")
def sign(g, input):
    return input if g.type(input).dtype.kind == "b" else g.call("aten::sign", input)


@ATEN.add("square")
def square(g, input):
    return g.call("aten::square", cast(g, input, np.int64) if g.type(input).dtype.kind == "b" else input)


@ATEN.add("positive", "__pos__", "real", "conj", "conj_physical", "resolve_conj", "resolve_neg")
def itself(g, input):
    return input


@ATEN.add("angle")
def angle(g, input):
    """Angle of real numbers: pi if negative, else 0; NaN stays."""
    x = floating(g, input)
    dtype = g.type(x).dtype
    negative = g.call("aten::lt", x, g.constant(0, dtype))
    half_turn = g.call("aten::where", negative, g.constant(np.pi, dtype), g.constant(0, dtype))
    return g.call("aten::where", g.call("aten::isnan", x), x, half_turn)


@ATEN.add("special_spherical_bessel_j0")
def spherical_bessel_j0(g, x):
    """sin x / x, and 1 at 0."""
    x = floating(g, x)
    return g.call("aten::sinc", g.call("aten::div", x, g.constant(np.pi, g.type(x).dtype)))


@ATEN.add("frexp")
def frexp(g, input):
    """``input`` = mantissa * 2 ** exponent with 0.5 <= |mantissa| < 1; zeros and infinities stay."""
    x = Term(g, floating(g, input))
    is_usual = x.ne(0) & (x - x).eq(0)
    size = is_usual.where(x.abs(), 0.5)
    exponent = size.log2().floor() + 1
    half = (-exponent / 2).floor()  # 2 ** -exponent itself may be beyond the largest number
    mantissa = size * half.like(2).pow(half) * half.like(2).pow(-exponent - half)
    is_large, is_small = mantissa >= 1, mantissa < 0.5  # where the logarithm was rounded
    mantissa = is_large.where(mantissa / 2, is_small.where(mantissa * 2, mantissa))
    exponent = is_large.where(exponent + 1, is_small.where(exponent - 1, exponent))
    return is_usual.where(mantissa * x.sign(), x).value, cast(g, exponent.value, np.int32)


ATEN.add("logit", "special_logit")(lambda g, input, eps=None: g.call("aten::logit", floating(g, input), eps))


@ATEN.add("nan_to_num")
def nan_to_num(g, input, nan=None, posinf=None, neginf=None):
    if kind_of(g.type(input).dtype) < 2:
        return input
    return g.call("aten::nan_to_num", input, nan, posinf, neginf)


@ATEN.add("polygamma", "special_polygamma")
def polygamma(g, n, input):
    return g.call("aten::polygamma", n, floating(g, input))


METHODS.add("polygamma")(lambda g, input, n: polygamma(g, n, input))


@ATEN.add("mvlgamma", "special_multigammaln")
def mvlgamma(g, input, p):
    """p(p-1)/4 log(pi) + the sum over j < p of lgamma(x - j/2)."""
    x = floating(g, input)
    dtype = g.type(x).dtype
    total = g.constant(p * (p - 1) / 4 * np.log(np.pi), dtype)
    for j in range(p):
        shifted = g.call("aten::sub", x, g.constant(j / 2, dtype))
        total = g.call("aten::add", total, g.call("aten::lgamma", shifted))
    return total
