"""Casts to element types of 2, 4 and 8 bits, whose values a graph holds in wider ones.

Source: the page "Float stored in 8 bits" and the operator Cast of ONNX's documentation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapters.values import cast, like
from tmconvert.frontends.onnx.element_types import ElementType
from tmconvert.frontends.shared.adapter_table import AdapterValue
from tmconvert.ir.emitter import Emitter


class FloatFormat(NamedTuple):
    """Bits of the mantissa, the smallest exponent of a normal number, the largest number, what is larger."""

    mantissa: int
    exponent: int
    largest: float
    overflow: float


FLOATS = {
    "float8e4m3fn": FloatFormat(3, -6, 448.0, float("nan")),
    "float8e4m3fnuz": FloatFormat(3, -7, 240.0, float("nan")),
    "float8e5m2": FloatFormat(2, -14, 57344.0, float("inf")),
    "float8e5m2fnuz": FloatFormat(2, -15, 57344.0, float("nan")),
}


def narrowed(g: Emitter, x: AdapterValue, type_: ElementType, saturate: bool) -> Any:
    """Casts to any element type; the result has the type that stands for it in a graph."""
    if type_.name in FLOATS:
        return _rounded(g, cast(g, x, np.float32), FLOATS[type_.name], saturate)
    if type_.name in ("float8e8m0", "float4e2m1"):
        raise Refusal(f"casts to {type_.name} are not supported", "keep these numbers in float32")
    if type_.bits < 8:
        return _wrapped(g, x, type_)
    return cast(g, x, type_.dtype)


def _wrapped(g: Emitter, x: AdapterValue, type_: ElementType) -> Any:
    """Keeps the low bits of an integer, as a cast between integers does."""
    count = 1 << type_.bits
    half = 0 if type_.dtype.kind == "u" else count // 2
    number = cast(g, x, np.int32)
    moved = g.call("aten::add", number, like(g, number, half))
    rest = g.call("aten::remainder", moved, like(g, number, count))
    return cast(g, g.call("aten::sub", rest, like(g, number, half)), type_.dtype)


def _rounded(g: Emitter, x: AdapterValue, format: FloatFormat, saturate: bool) -> Any:
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
    return g.call("aten::where", g.call("aten::lt", x, like(g, x, 0)), g.call("aten::neg", near), near)
