"""Rounding, signs and remainders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, INTEGERS, NUMBERS, Op, Tensor
from tmconvert.symbolics.ops.elementwise.binary import difference, multiplied
from tmconvert.symbolics.results import broadcast, same_as
from tmconvert.symbolics.traits import DividesBySecond

Array = np.ndarray


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.sign(x) * (np.abs(x - whole) >= 0.5)


def _sign(x: Array) -> Array:  # of NaN, too, a zero, as in ATen and MegEngine
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _trunc_divide(x: Array, other: Array) -> Array:
    return (x - np.fmod(x, other)) // other


UNARY: dict[str, tuple[Callable[[Array], Array], tuple[str, ...]]] = {
    "aten::sign": (_sign, NUMBERS),
    "aten::trunc": (np.trunc, FLOATS),
    "aten::frac": (lambda x: x - np.trunc(x), FLOATS),
    "aten::round": (np.rint, FLOATS),  # halves to the even neighbour
    "tm::round_half_away": (_half_away, FLOATS),  # halves away from zero
}
BINARY: dict[str, tuple[Callable[[Array, Array], Array], tuple[str, ...]]] = {
    "tm::trunc_divide": (_trunc_divide, INTEGERS),
    "aten::floor_divide": (np.floor_divide, NUMBERS),
    "aten::fmod": (np.fmod, NUMBERS),  # the sign of x
    "aten::remainder": (np.remainder, NUMBERS),  # the sign of other
}


def _unary(name: str) -> Op:
    kernel, dtypes = UNARY[name]
    op = Op(name, args=[Tensor("x", dtypes)], result=same_as("x"), layout=ANY)
    op.reference(lambda x: kernel(x).astype(x.dtype))
    return op


def _binary(name: str) -> Op:
    kernel, dtypes = BINARY[name]
    args = [Tensor("x", dtypes), Tensor("other", dtypes)]
    op = Op(name, args=args, result=broadcast("x", "other"), layout=ANY, traits=[DividesBySecond()])
    op.reference(lambda x, other: kernel(x, other))
    return op


ROUNDING = {name.rpartition(":")[2]: _unary(name) for name in UNARY} | {
    name.rpartition(":")[2]: _binary(name) for name in BINARY
}
OPS = list(ROUNDING.values())

ROUNDING["sign"].onnx(since=9)(lambda g, x: g.op("Sign", x))
ROUNDING["round"].onnx(since=11)(lambda g, x: g.op("Round", x))
ROUNDING["round"].tflite()(lambda g, x: g.op("ROUND", x))
ROUNDING["trunc_divide"].onnx(since=7)(lambda g, x, other: g.op("Div", x, other))
ROUNDING["trunc_divide"].tflite()(lambda g, x, other: idioms.tflite.divided(g, x, other))
ROUNDING["fmod"].onnx(since=10)(lambda g, x, other: g.op("Mod", x, other, fmod=1))
ROUNDING["remainder"].tflite()(lambda g, x, other: g.op("FLOOR_MOD", x, other))


@ROUNDING["floor_divide"].tflite()
def floor_divide_tflite(g, x, other):
    if x.dtype == np.int64:
        return idioms.tflite.divided(g, g.op("SUB", x, g.op("FLOOR_MOD", x, other)), other)
    return g.op("FLOOR_DIV", x, other)


ROUNDING["round"].caffe()(lambda g, x: idioms.caffe_numbers.rounded(g, x))


@ROUNDING["trunc_divide"].caffe()
def trunc_divide_caffe(g, x, other):
    """Nearest quotient of the absolute values, minus 1 where it is too large; products of these are exact."""
    size, by = (_size_caffe(g, value) for value in (x, other))
    inverse = g.const(1 / by.data) if by.is_constant else g.op("Power", by, power=-1.0)
    nearest = idioms.caffe_numbers.rounded(g, multiplied(g, size, inverse))
    above = idioms.caffe_numbers.step(g, difference(g, multiplied(g, nearest, by), size))
    whole = g.op("Eltwise", nearest, above, operation="SUM", coeff=[1.0, -1.0])
    for value in (x, other):
        whole = multiplied(g, whole, _sign_caffe(g, value))
    return whole


def _size_caffe(g: Any, x: Any) -> Any:
    return g.const(np.abs(x.data.astype(np.float32))) if x.is_constant else g.op("AbsVal", x)


def _sign_caffe(g: Any, x: Any) -> Any:
    if x.is_constant:
        return g.const(np.sign(x.data.astype(np.float32)))
    signs = [idioms.caffe_numbers.step(g, value) for value in (x, g.op("Power", x, scale=-1.0))]
    return g.op("Eltwise", *signs, operation="SUM", coeff=[1.0, -1.0])


@ROUNDING["remainder"].onnx(since=10)
def remainder_onnx10(g, x, other):
    if x.dtype.kind != "f":
        return g.op("Mod", x, other)
    rest = g.op("Mod", x, other, fmod=1)
    if other.is_constant and np.isfinite(other.data).all():
        return g.op("Sub", rest, g.op("Mul", g.op("Floor", g.op("Div", rest, other)), other))
    sign_differs = g.op("Less", g.op("Mul", g.op("Sign", rest), other), g.const(0, x.dtype), dtype=bool)
    return g.op("Where", sign_differs, g.op("Add", rest, other), rest, dtype=x.dtype)


@formula(ROUNDING["sign"])
def sign(x: Term) -> Term:
    above = (x > 0).to(x.dtype)
    return above if x.dtype.kind == "u" else above - (x < 0).to(x.dtype)


formula(ROUNDING["trunc"])(lambda x: x.relu().floor() + x.clamp(max=0).ceil())
formula(ROUNDING["frac"])(lambda x: x - x.trunc())


@formula(ROUNDING["round"])  # up and down differ at a half only; of the two take the even one
def round_half_even(x: Term) -> Term:
    up, down = (x + 0.5).floor(), (x - 0.5).ceil()
    odd = up - (up * 0.5).floor() * 2
    return up - odd * (up - down)


@formula(ROUNDING["round_half_away"])  # exact: no sum with 0.5, which rounds
def round_half_away(x: Term) -> Term:
    whole = x.trunc()
    away = ~((x - whole).abs() < 0.5)
    return whole + x.sign() * away.to(x.dtype)


@formula(ROUNDING["fmod"])
def fmod(x: Term, other: Term) -> Term:
    if x.dtype.kind == "f":
        return x - (x / other).trunc() * other
    return x - x.call("tm::trunc_divide", other) * other


@formula(ROUNDING["remainder"])
def remainder(x: Term, other: Term) -> Term:
    rest = x.fmod(other)
    if x.dtype.kind == "f":
        return rest - (rest / other).floor() * other
    if x.dtype.kind == "u":
        return rest
    return rest + _sign_differs(rest, other).to(x.dtype) * other


def _sign_differs(rest: Term, other: Term) -> Term:
    return ((rest < 0) & (other > 0)) | ((rest > 0) & (other < 0))


@formula(ROUNDING["floor_divide"])  # x - remainder is a multiple of other
def floor_divide(x: Term, other: Term) -> Term:
    if x.dtype.kind == "f":
        quotient = ((x - x.remainder(other)) / other).round()
        known = x.g.known(other.value)
        return quotient if known is not None and known.all() else other.eq(0).where(x / other, quotient)
    quotient = x.call("tm::trunc_divide", other)
    if x.dtype.kind == "u":
        return quotient
    return quotient - _sign_differs(x - quotient * other, other).to(x.dtype)
