"""Elementwise ops with formula decompositions: sinc, entr, xlog1py, ldexp, isclose, gcd and lcm."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, INTEGERS, NUMBERS, Op, Tensor, boolean, number
from tmconvert.symbolics.results import broadcast, same_as

Array = np.ndarray


def _pair(name: str, dtypes: tuple[str, ...]) -> Op:
    args = [Tensor("x", dtypes), Tensor("other", dtypes)]
    return Op(f"aten::{name}", args=args, result=broadcast("x", "other"), layout=ANY)


sinc, entr = (
    Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY)
    for name in ("sinc", "special_entr")
)
xlog1py, ldexp = _pair("special_xlog1py", FLOATS), _pair("ldexp", FLOATS)
gcd, lcm = _pair("gcd", INTEGERS), _pair("lcm", INTEGERS)

entr.reference(lambda x: np.where(x == 0, 0, np.where(x < 0, -np.inf, -x * np.log(x))).astype(x.dtype))
xlog1py.reference(
    lambda x, other: np.where((x == 0) & ~np.isnan(other), 0, x * np.log1p(other)).astype(x.dtype)
)
ldexp.reference(lambda x, other: (x * np.exp2(other)).astype(x.dtype))
gcd.reference(lambda x, other: np.gcd(x, other))
lcm.reference(lambda x, other: np.abs(np.lcm(x, other)))


@sinc.reference
def sinc_ref(x: Array) -> Array:
    """sin(pi x) / (pi x): 1 at 0, and exactly 0 at other integers."""
    return np.where((x == np.rint(x)) & (x != 0), 0 * x, np.sinc(x)).astype(x.dtype)


@formula(sinc)  # sin(pi x) / (pi x); the angle is taken from the nearest integer, where it is exact
def sinc_quotient(x: Term) -> Term:
    whole = x.round()
    sine = ((x - whole) * math.pi).sin()
    is_odd = whole * 0.5 - (whole * 0.5).floor()
    return x.eq(0).where(1, sine * (1 - is_odd * 4) / (x * math.pi))


@formula(entr)  # of numbers above 0 the logarithm, so that no NaN has to be hidden
def entr_log(x: Term) -> Term:
    return (x < 0).where(-np.inf, -(x * x.clamp(min=float(np.finfo(x.dtype).tiny)).log()))


formula(xlog1py)(lambda x, other: (x.eq(0) & other.eq(other)).where(0, x * other.log1p()))
formula(ldexp)(lambda x, other: x * other.exp2())


def _steps(dtype: np.dtype) -> int:
    """Returns the maximum number of steps of Euclid's algorithm, which Fibonacci numbers need."""
    return math.ceil(8 * dtype.itemsize / math.log2((1 + math.sqrt(5)) / 2))


@formula(gcd)
def gcd_euclid(x: Term, other: Term) -> Term:
    for _ in range(_steps(x.dtype)):
        is_done = other.eq(0)
        rest = x.fmod(is_done.where(1, other))
        x, other = is_done.where(x, other), is_done.where(0, rest)
    return x if x.dtype.kind == "u" else x.abs()


@gcd.caffe()
def gcd_caffe(g, x, other):
    """Uses remainders of the nearest quotient, which at least halve: one step per bit."""
    shape = g.result_types[0].shape
    full = shape if len(shape) > 1 else (1, *(shape or (1,)))
    like = other if x.is_constant else x
    x, other = (idioms.caffe_numbers.filled(g, v, like) if v.is_constant else v for v in (x, other))
    x, other = (g.op("AbsVal", idioms.caffe.spread(g, value, full)) for value in (x, other))
    for _ in range(min(8 * like.dtype.itemsize, idioms.caffe_numbers.MOST_BITS)):
        is_done = idioms.caffe_numbers.complement(g, idioms.caffe_numbers.step(g, other))
        by = g.op("Eltwise", other, is_done, operation="SUM")
        quotient = g.op("Eltwise", x, g.op("Power", by, power=-1.0), operation="PROD")
        multiple = g.op("Eltwise", idioms.caffe_numbers.rounded(g, quotient), by, operation="PROD")
        rest = g.op("AbsVal", g.op("Eltwise", x, multiple, operation="SUM", coeff=[1.0, -1.0]))
        kept = g.op("Eltwise", x, is_done, operation="PROD")
        x, other = g.op("Eltwise", other, kept, operation="SUM"), rest
    return idioms.caffe.reshaped(g, x, shape)


@formula(lcm)
def lcm_quotient(x: Term, other: Term) -> Term:
    divisor = x.gcd(other)
    product = x.call("tm::trunc_divide", divisor.eq(0).where(1, divisor)) * other
    return product if x.dtype.kind == "u" else product.abs()


def _close(x: TensorType, other: TensorType, rtol: float, atol: float, equal_nan: bool) -> TensorType:
    if rtol < 0 or atol < 0:
        raise ValueError(f"the tolerances {rtol} and {atol} must be non-negative")
    return broadcast("x", "other", dtype="bool")(x=x, other=other)


isclose = Op(
    "aten::isclose",
    args=[
        Tensor("x", NUMBERS), Tensor("other", NUMBERS), number("rtol", 1e-5), number("atol", 1e-8),
        boolean("equal_nan", False),
    ],
    result=_close,
    layout=ANY,
)  # fmt: skip


@isclose.reference
def isclose_ref(x: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """|x - other| <= atol + rtol |other|, or both equal; of integers in float32."""
    close = x == other
    if x.dtype.kind != "f":
        x, other = x.astype(np.float32), other.astype(np.float32)
    allowed = atol + np.abs(np.asarray(rtol, x.dtype) * other)
    error = np.abs(x - other)
    close = close | (np.isfinite(error) & (error <= allowed))
    return close | (np.isnan(x) & np.isnan(other)) if equal_nan else close


@formula(isclose)
def isclose_difference(x: Term, other: Term, rtol: float, atol: float, equal_nan: bool) -> Term:
    is_equal = x.eq(other)
    if x.dtype.kind != "f":
        x, other = x.to(np.float32), other.to(np.float32)
    error, size = (x - other).abs(), other.abs()
    is_finite = x.abs().maximum(size) < np.inf  # LiteRT makes no infinite error
    close = is_equal | ((error <= size * rtol + atol) & is_finite)
    if equal_nan:
        close = close | (x.isnan() & other.isnan())
    return close


OPS = [sinc, entr, xlog1py, ldexp, gcd, lcm, isclose]
