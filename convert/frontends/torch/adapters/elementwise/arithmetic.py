"""Elementwise arithmetic of two or more operands, with torch's type promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import (
    cast,
    common_type,
    constant,
    is_number,
    is_tensor,
    kind_of,
    promoted,
)
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.symbolics.results import fits

ATEN = Table()


@ATEN.add("add", "__add__", "__radd__")
def add(g, input, other, *, alpha=1):
    x, y = promoted(g, input, other)
    if g.type(x).dtype.kind == "b":
        return g.call("aten::logical_or", x, y) if alpha else x
    return g.call("aten::add", x, _scaled(g, y, alpha))


@ATEN.add("sub", "subtract", "__sub__")
def sub(g, input, other, *, alpha=1):
    x, y = promoted(g, input, other)
    return g.call("aten::sub", x, _scaled(g, y, alpha))


def _scaled(g, x, factor):
    return x if factor == 1 else g.call("aten::mul", x, constant(g, factor, g.type(x).dtype))


ATEN.add("rsub", "__rsub__")(lambda g, input, other, *, alpha=1: sub(g, other, input, alpha=alpha))


@ATEN.add("mul", "multiply", "__mul__", "__rmul__")
def mul(g, input, other):
    x, y = promoted(g, input, other)
    return g.call("aten::logical_and" if g.type(x).dtype.kind == "b" else "aten::mul", x, y)


@ATEN.add("div", "true_divide", "divide", "__div__", "__truediv__")
def div(g, input, other, *, rounding_mode=None):
    x, y = promoted(g, input, other, to_float=rounding_mode is None)
    if rounding_mode is None:
        return g.call("aten::div", x, y)
    if rounding_mode == "floor":
        return g.call("aten::floor_divide", x, y)
    if rounding_mode != "trunc":
        raise Refusal(f"div does not support rounding_mode={rounding_mode!r}")
    if kind_of(g.type(x).dtype) < 2:
        return g.call("tm::trunc_divide", x, y)
    return g.call("aten::trunc", g.call("aten::div", x, y))


ATEN.add("__rdiv__", "__rtruediv__")(lambda g, input, other: div(g, other, input))
ATEN.add("floor_divide", "__floordiv__")(lambda g, input, other: div(g, input, other, rounding_mode="floor"))
ATEN.add("pow", "__pow__")(lambda g, input, exponent: g.call("aten::pow", *promoted(g, input, exponent)))


@ATEN.add("float_power")
def float_power(g, input, exponent):
    return g.call("aten::pow", *promoted(g, input, exponent, dtype=np.float64))


@ATEN.add("ldexp")
def ldexp(g, input, other):
    two = g.call("aten::pow", *promoted(g, 2.0, other, to_float=True))
    return mul(g, input, two)


def _declare(name: str, *names: str, to_float: bool = False, of_bools: str = "") -> None:
    """Declares a binary op. ``of_bools`` is the op for bool operands."""

    def adapter(g, input, other):
        x, y = promoted(g, input, other, to_float=to_float)
        return g.call(of_bools if of_bools and g.type(x).dtype.kind == "b" else f"aten::{name}", x, y)

    ATEN.add(name, *names)(adapter)


_declare("maximum", of_bools="aten::logical_or")
_declare("minimum", of_bools="aten::logical_and")
_declare("remainder", "__mod__")
_declare("fmod")
_declare("gcd")
_declare("lcm")
_declare("hypot")
_declare("atan2", "arctan2", to_float=True)
_declare("copysign", to_float=True)
_declare("logaddexp", to_float=True)
_declare("logaddexp2", to_float=True)
_declare("xlogy", "special_xlogy", to_float=True)
_declare("special_xlog1py", to_float=True)
_declare("special_zeta", to_float=True)
_declare("igamma", "special_gammainc", to_float=True)
_declare("igammac", "special_gammaincc", to_float=True)

for _name in (
    *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
):

    def _polynomial(g: Emitter, x, n, _name: str = _name) -> Any:
        return g.call(f"aten::special_{_name}", *promoted(g, x, n, to_float=True))

    ATEN.add(f"special_{_name}")(_polynomial)


def _declare_extreme(name: str, of_integers: str) -> None:
    def adapter(g, input, other):
        kind = kind_of(common_type(g, input, other))
        return (
            ATEN[of_integers](g, input, other)
            if kind < 2
            else g.call(f"aten::{name}", *promoted(g, input, other))
        )

    ATEN.add(name)(adapter)


_declare_extreme("fmax", "maximum")
_declare_extreme("fmin", "minimum")


ATEN.add("heaviside")(lambda g, input, values: g.call("aten::heaviside", *promoted(g, input, values)))


for _name in ("pow", "mod", "floordiv"):
    _plain = ATEN[f"__{_name}__"]

    def _reflected(g: Emitter, input: Any, other: Any, _plain: Any = _plain) -> Any:
        return _plain(g, other, input)

    ATEN.add(f"__r{_name}__")(_reflected)


# ---- three operands


@ATEN.add("lerp")
def lerp(g, input, end, weight):
    x, y = promoted(g, input, end)
    weight = cast(g, weight, g.type(x).dtype) if is_tensor(weight) else constant(g, weight, g.type(x).dtype)
    return g.call("aten::lerp", x, y, weight)


@ATEN.add("addcmul")
def addcmul(g, input, tensor1, tensor2, *, value=1):
    x, first, second = promoted(g, input, tensor1, tensor2)
    return g.call("aten::add", x, g.call("aten::mul", _scaled(g, first, value), second))


@ATEN.add("addcdiv")
def addcdiv(g, input, tensor1, tensor2, *, value=1):
    x, first, second = promoted(g, input, tensor1, tensor2)
    return g.call("aten::add", x, g.call("aten::div", _scaled(g, first, value), second))


@ATEN.add("clamp", "clip")
def clamp(g, input, min=None, max=None):
    """``min(max(input, min), max)``. Bounds take part in type promotion, and may be tensors."""
    bounds = [bound for bound in (min, max) if bound is not None]
    dtype = common_type(g, input, *bounds)
    x = cast(g, input, dtype)
    if dtype.kind != "b" and all(_is_plain(bound, dtype) for bound in bounds):
        number = float if kind_of(dtype) == 2 else int
        return g.call("aten::clamp", x, *(None if bound is None else number(bound) for bound in (min, max)))
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            x = ATEN[name](g, x, *promoted(g, bound, dtype=dtype))
    return x


def _is_plain(bound: Any, dtype: np.dtype) -> bool:
    """Whether a bound is a number of the element type and not NaN, which would make all results NaN."""
    if not is_number(bound) or isinstance(bound, Dim) or bound != bound:
        return False
    return kind_of(dtype) == 2 or fits(bound, dtype)


@ATEN.add("clamp_min")
def clamp_min(g, input, min):
    return clamp(g, input, min)


ATEN.add("clamp_max")(lambda g, input, max: clamp(g, input, None, max))
