"""aten::pow."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import NUMBERS, Op, Tensor
from tmconvert.symbolics.ops.elementwise.to import ONNX_TYPES
from tmconvert.symbolics.results import broadcast
from tmconvert.symbolics.traits import SeesSignOfZero

Array = np.ndarray
# whole powers of integers up to this one are products
LARGEST = 16
INT32 = np.dtype(np.int32)
DOUBLE = ONNX_TYPES["float64"]
_STEEP = 3e38

power = Op(
    "aten::pow",
    args=[Tensor("x", NUMBERS), Tensor("exponent", NUMBERS)],
    result=broadcast("x", "exponent"),
    layout=ANY,
    traits=[SeesSignOfZero(0, exponent=1)],
)


@power.reference
def pow_ref(x: Array, exponent: Array) -> Array:
    """NaN for a negative base with a fractional exponent; integers to a negative power are truncated."""
    if x.dtype.kind == "f":
        return np.power(x, exponent)
    sign = np.where(exponent % 2 == 0, 1, x)
    inverse = np.where(np.abs(x) == 1, sign, 0)
    return np.where(exponent < 0, inverse, np.power(x, np.maximum(exponent, 0))).astype(x.dtype)


@power.onnx(since=7)
def pow_onnx7(g, x, exponent):
    if x.dtype.kind == "f":
        return g.op("Pow", x, exponent)
    if exponent.is_constant and exponent.data.size == 1 and len(exponent.shape) <= len(x.shape):
        count = int(exponent.data.reshape(-1)[0])
        if 0 < count <= LARGEST:
            return _product(g, "Mul", x, count)
    base, count = (g.op("Cast", value, to=DOUBLE, dtype=np.float64) for value in (x, exponent))
    if not exponent.is_constant or (exponent.data < 0).any():  # for 0, whose inverse is infinite, take 2
        is_zero = g.op("Less", g.op("Abs", base), g.const(0.5, np.float64), dtype=bool)
        is_inverse = g.op("And", is_zero, g.op("Less", count, g.const(0, np.float64), dtype=bool))
        two = g.op("Mul", g.op("Cast", is_inverse, to=DOUBLE, dtype=np.float64), g.const(2, np.float64))
        base = g.op("Add", base, two)
    return g.op("Cast", g.op("Pow", base, count), to=ONNX_TYPES[x.dtype.name], dtype=x.dtype)


def _product(g: Any, operator: str, x: Any, count: int) -> Any:
    """``x`` to the power ``count``, by repeated squaring."""
    if count == 1:
        return x
    half = _product(g, operator, x, count // 2)
    square = g.op(operator, half, half)
    return g.op(operator, square, x) if count % 2 else square


@power.tflite()
def pow_tflite(g, x, exponent):
    """Avoids POW where possible, which is slow, and not in XNNPACK."""
    is_one = exponent.is_constant and exponent.data.size == 1 and len(exponent.shape) <= len(x.shape)
    if x.dtype.kind != "f" and not (is_one and 0 < exponent.data.reshape(-1)[0] <= LARGEST):
        return _whole_power_tflite(g, x, exponent)
    if not is_one:
        return g.op("POW", x, exponent)
    number = exponent.data.reshape(-1)[0].item()
    if 0 < number <= LARGEST and number == int(number):
        return _product(g, "MUL", x, int(number))
    if x.dtype.kind == "f" and -LARGEST <= number < 0 and number == int(number):
        return g.op("DIV", g.const(1), _product(g, "MUL", x, -int(number)))
    if x.dtype.kind == "f" and number in (0.5, -0.5):
        return g.op("SQRT", x) if number > 0 else idioms.tflite.inverse_root(g, x)
    return g.op("POW", x, exponent)


def _whole_power_tflite(g: Any, x: Any, exponent: Any) -> Any:
    """Integer powers by repeated squaring: POW supports neither int64 nor negative exponents.

    For an exponent beyond 66 there is one below with the same result, unless that overflows.
    """
    wide = exponent if exponent.dtype == np.int64 else g.cast(exponent, INT32)
    two, least, most = (g.const(np.array(number, wide.dtype)) for number in (2, -66, 64))
    odd = g.op("FLOOR_MOD", wide, two)
    bounded = g.op("MAXIMUM", g.op("MINIMUM", wide, g.op("ADD", odd, most)), g.op("ADD", odd, least))
    count = g.cast(bounded, INT32)
    rest = g.op("MAXIMUM", count, g.op("NEG", count))
    zero, one, back = (g.const(np.array(number).astype(x.dtype)) for number in (0, 1, -1))
    none, pair = (g.const(np.array(number, INT32)) for number in (0, 2))
    result, square = one, x
    for _ in range(7):
        is_set = g.op("NOT_EQUAL", g.op("FLOOR_MOD", rest, pair), none, dtype=bool)
        result = g.op("MUL", result, g.op("SELECT_V2", is_set, square, one, dtype=x.dtype))
        rest, square = g.op("FLOOR_DIV", rest, pair), g.op("MUL", square, square)
    units = [g.op("EQUAL", x, each, dtype=bool) for each in (one, back)]
    is_whole = g.op("GREATER_EQUAL", count, none, dtype=bool)
    is_kept = g.op("LOGICAL_OR", is_whole, g.op("LOGICAL_OR", *units, dtype=bool), dtype=bool)
    return g.op("SELECT_V2", is_kept, result, zero, dtype=x.dtype)


@power.caffe()
def pow_caffe(g, x, exponent):
    if _is_number(exponent, x) and (x.dtype.kind == "f" or exponent.data.reshape(-1)[0] >= 0):
        return g.op("Power", x, power=float(exponent.data.reshape(-1)[0]))
    if x.dtype.kind != "f":
        g.refuse("Caffe computes in float32, in which powers of integers are not exact")
    if _is_number(x, exponent) and x.data.reshape(-1)[0] > 0:
        return g.op("Exp", exponent, base=float(x.data.reshape(-1)[0]))
    return _computed_caffe(g, x, exponent)


def _is_number(value: Any, factor: Any) -> bool:
    return value.is_constant and value.data.size == 1 and len(value.shape) <= len(factor.shape)


def _computed_caffe(g: Any, x: Any, exponent: Any) -> Any:
    """exp(exponent log |x|), negated for negative x and odd exponents, NaN for fractional ones.

    To 1 part in 2^23 for each unit of that product. 1 where the exponent is 0, whatever x is.
    NaN where it is infinite.
    """
    shape = g.result_types[0].shape
    like = x if exponent.is_constant else exponent
    full = shape if len(shape) > 1 else (1, *(shape or (1,)))
    x, exponent = (
        idioms.caffe.spread(g, idioms.caffe_numbers.filled(g, v, like) if v.is_constant else v, full)
        for v in (x, exponent)
    )
    size = g.op("Log", g.op("AbsVal", x))
    size = g.op("Exp", g.op("Eltwise", exponent, size, operation="PROD"))
    below = idioms.caffe_numbers.step(g, g.op("Power", x, scale=-1.0))
    half = idioms.caffe_numbers.floored(g, g.op("Power", exponent, scale=0.5))
    odd = g.op("Eltwise", exponent, half, operation="SUM", coeff=[1.0, -2.0])  # from 0 to 2, or a fraction
    turn = g.op("Power", g.op("Eltwise", below, odd, operation="PROD"), scale=-2.0, shift=1.0)
    part = g.op(
        "Eltwise", exponent, idioms.caffe_numbers.floored(g, exponent), operation="SUM", coeff=[1.0, -1.0]
    )
    part = g.op("Eltwise", below, idioms.caffe_numbers.step(g, part), operation="PROD")
    nowhere = g.op("Log", g.op("Power", part, scale=-2.0, shift=1.0))  # 0, or the logarithm of -1
    size = g.op("Eltwise", g.op("Eltwise", size, turn, operation="PROD"), nowhere, operation="SUM")
    is_zero = idioms.caffe_numbers.above(
        g, g.op("Exp", g.op("AbsVal", exponent), scale=-_STEEP), 0.5
    )  # NaN is not
    return idioms.caffe_numbers.chosen(g, is_zero, g.const(np.ones((), np.float32)), size, shape)
