"""Casts to element types of 2, 4 and 8 bits, whose values a graph holds in wider ones.

Source: the page "Float stored in 8 bits" and the operator Cast of ONNX's documentation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.formats.onnx.element_types import ElementType
from tmconvert.frontends.onnx.adapters.values import cast, like, reshaped
from tmconvert.ir.emitter import Emitter


class FloatFormat(NamedTuple):
    """Bits of the mantissa, the smallest exponent of a normal number, the largest number, what is larger, and
    what stands for NaN.
    """

    mantissa: int
    exponent: int
    largest: float
    overflow: float
    nan: float = float("nan")


FLOATS = {
    "float8e4m3fn": FloatFormat(3, -6, 448.0, float("nan")),
    "float8e4m3fnuz": FloatFormat(3, -7, 240.0, float("nan")),
    "float8e5m2": FloatFormat(2, -14, 57344.0, float("inf")),
    "float8e5m2fnuz": FloatFormat(2, -15, 57344.0, float("nan")),
    "float4e2m1": FloatFormat(1, 0, 6.0, 6.0, -0.0),  # has no infinity and no NaN
}
LEAST_POWER, MOST_POWER = -127, 127  # exponents of float8e8m0, whose numbers are powers of two


def narrowed(g: Emitter, x, type_: ElementType, saturate: bool, round_mode: str = "up") -> Any:
    """Casts to any element type; the result has the type that stands for it in a graph."""
    if type_.name in FLOATS:
        return _rounded(g, cast(g, x, np.float32), FLOATS[type_.name], saturate)
    if type_.name == "float8e8m0":
        return _power_of_two(g, cast(g, x, np.float32), saturate, round_mode)
    if type_.bits < 8:
        return _wrapped(g, x, type_)
    return cast(g, x, type_.dtype)


def _wrapped(g: Emitter, x, type_: ElementType) -> Any:
    """Keeps the low bits of an integer, as a cast between integers does."""
    count = 1 << type_.bits
    half = 0 if type_.dtype.kind == "u" else count // 2
    number = cast(g, x, np.int32)
    moved = g.call("aten::add", number, like(g, number, half))
    rest = g.call("aten::remainder", moved, like(g, number, count))
    return cast(g, g.call("aten::sub", rest, like(g, number, half)), type_.dtype)


def _rounded(g: Emitter, x, format: FloatFormat, saturate: bool) -> Any:
    """Rounds to the nearest number of a format, halves to the even one."""
    size = g.call("aten::abs", x)
    least = 2.0**format.exponent
    logarithm = g.call("aten::log", g.call("aten::clamp", size, least, 2 * format.largest))
    # a number so close to a power of two that this is off by one is rounded to that power in any case
    exponent = g.call("aten::floor", g.call("aten::mul", logarithm, like(g, x, 1 / math.log(2))))
    step = g.call("aten::pow", like(g, x, 2), g.call("aten::sub", exponent, like(g, x, format.mantissa)))
    near = g.call("aten::mul", g.call("aten::round", g.call("aten::div", size, step)), step)
    largest = like(g, x, format.largest)
    is_large = g.call("aten::gt", near, largest)
    over = format.largest if saturate else format.overflow
    near = g.call("aten::where", is_large, like(g, x, over), near)
    made = g.call("aten::where", g.call("aten::lt", x, like(g, x, 0)), g.call("aten::neg", near), near)
    if math.isnan(format.nan):
        return made
    return g.call("aten::where", g.call("aten::isnan", x), like(g, x, format.nan), made)


def _power_of_two(g: Emitter, x, saturate: bool, round_mode: str) -> Any:
    """Rounds to a power of two; negative numbers, for which ONNX defines nothing, become NaN."""
    if round_mode not in ("up", "down", "nearest"):
        raise Refusal(f"casts to float8e8m0 that round {round_mode!r}")
    powers = 2.0 ** np.arange(LEAST_POWER, MOST_POWER + 1)
    # where the numbers of the next power begin; with "up" they do after this number
    begins = {"up": powers, "down": 2 * powers, "nearest": 1.5 * powers}[round_mode]
    limits = g.constant(begins[:-1].astype(np.float32))
    places = g.call("aten::bucketize", x, limits, round_mode != "up")
    made = g.call("aten::index_select", g.constant(powers.astype(np.float32)), 0, reshaped(g, places, [-1]))
    made = reshaped(g, made, list(g.type(x).shape))
    is_wrong = g.call("aten::logical_not", g.call("aten::ge", x, like(g, x, 0)))  # NaN, too
    largest = float("inf") if saturate or round_mode == "down" else begins[-1]
    at_end = "aten::gt" if round_mode == "up" and not saturate else "aten::ge"
    is_wrong = g.call("aten::logical_or", is_wrong, g.call(at_end, x, like(g, x, largest)))
    return g.call("aten::where", is_wrong, like(g, x, float("nan")), made)
