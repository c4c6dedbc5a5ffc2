"""The modes of MegEngine's Elemwise operator, by which its elementwise functions are converted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import cast, floating, is_tensor, promoted, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

Adapter = Callable[..., Any]
MODES: dict[str, Adapter] = {}

# mode -> op of one argument that keeps integers
KEEPING = {"ABS": "aten::abs", "NEGATE": "aten::neg", "SQUARE": "aten::square", "SIGN": "aten::sign"}
# the same for what leaves integers alone
ROUNDING = {"CEIL": "aten::ceil", "FLOOR": "aten::floor", "ROUND": "tm::round_half_away"}
# mode -> op of floats; integers become float32
FLOATING = {
    **{name.upper(): f"aten::{name}" for name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos")},
    **{name.upper(): f"aten::{name}" for name in ("asin", "acos", "sinh", "cosh", "tanh", "asinh", "acosh")},
    **{name.upper(): f"aten::{name}" for name in ("atanh", "erf", "erfc", "erfinv", "gelu", "silu")},
    **{name.upper(): f"aten::{name}" for name in ("sigmoid", "softplus", "tan")},
    "LOGSIGMOID": "aten::log_sigmoid",
    "HSIGMOID": "aten::hardsigmoid",
    "H_SWISH": "aten::hardswish",
}
# ops on integers that targets have only for floats -> the bounds of the clamp that says the same
CLAMPING = {"RELU": {"min": 0}, "RELU6": {"min": 0, "max": 6}}
# mode -> op of two arguments of one dtype, and whether integers become float32
BINARY = {
    "ADD": ("add", False),
    "SUB": ("sub", False),
    "MUL": ("mul", False),
    "MAX": ("maximum", False),
    "MIN": ("minimum", False),
    "SHL": ("bitwise_left_shift", False),
    "SHR": ("bitwise_right_shift", False),
    "TRUE_DIV": ("div", True),
    "ATAN2": ("atan2", True),
    "LOG_SUM_EXP": ("logaddexp", True),
}
COMPARISONS = {"EQ": "eq", "NEQ": "ne", "LT": "lt", "LEQ": "le"}
LOGIC = {"AND": "logical_and", "OR": "logical_or", "XOR": "logical_xor"}
FUSED_ADD = {f"FUSE_ADD_{mode}": mode for mode in ("RELU", "SIGMOID", "TANH", "H_SWISH")}


def applied(g, mode, *inputs):
    """Emits the mode ``mode`` (a case-insensitive name) on tensors and numbers."""
    name = str(mode).rpartition(".")[2].upper()
    if name not in MODES:
        gradient = name.endswith("_GRAD")
        raise Refusal(
            f"the Elemwise mode {name} is {'a gradient' if gradient else 'not known'}",
            "trace the model for inference" if gradient else "",
        )
    return MODES[name](g, *inputs)


def mode(*names: str) -> Callable[[Adapter], Adapter]:
    """Declares the decorated function as the adapter of these modes."""

    def register(adapter: Adapter) -> Adapter:
        MODES.update(dict.fromkeys(names, adapter))
        return adapter

    return register


def compared(g: Emitter, op: str, x, y) -> Any:
    """A comparison, bools; bools themselves are ordered as 0 and 1. That of scalars has one axis."""
    x, y = promoted(g, x, y)
    if g.type(x).dtype.kind == "b" and op not in ("eq", "ne"):
        x, y = cast(g, x, np.int32), cast(g, y, np.int32)
    return with_an_axis(g, g.call(f"aten::{op}", x, y))


def with_an_axis(g, x):
    """``x``, but with shape (1,) in the place of ()."""
    return x if g.type(x).rank else reshaped(g, x, [1])


def _unary(op: str) -> Adapter:
    return lambda g, x: g.call(op, x)


def _rounding(op: str) -> Adapter:
    return lambda g, x: g.call(op, x) if _is_float(g, x) else x


def _floating(op: str) -> Adapter:
    return lambda g, x: g.call(op, floating(g, x))


def _clamping(op: str, bounds: dict[str, int]) -> Adapter:
    return lambda g, x: g.call(op, x) if _is_float(g, x) else g.call("aten::clamp", x, **bounds)


def _binary(op: str, to_float: bool) -> Adapter:
    return lambda g, x, y: g.call(op, *promoted(g, x, y, to_float=to_float))


def _comparison(op: str) -> Adapter:
    """Casts operands to their common dtype."""
    return lambda g, x, y: cast(g, compared(g, op, x, y), g.type(promoted(g, x, y)[0]).dtype)


def _logic(op: str) -> Adapter:
    return lambda g, x, y: g.call(op, _flags(g, x), _flags(g, y))


def _fused_add(name: str) -> Adapter:
    return lambda g, x, y: MODES[name](g, MODES["ADD"](g, x, y))


def _is_float(g: Emitter, x) -> bool:
    return bool(g.type(x).dtype.kind == "f")


def _flags(g, value):
    return value if is_tensor(value) else g.constant(bool(value))


MODES.update(
    {
        **{name: _unary(op) for name, op in KEEPING.items()},
        **{name: _rounding(op) for name, op in ROUNDING.items()},
        **{name: _floating(op) for name, op in FLOATING.items()},
        **{name: _clamping(f"aten::{name.lower()}", bounds) for name, bounds in CLAMPING.items()},
        **{name: _binary(f"aten::{op}", to_float) for name, (op, to_float) in BINARY.items()},
        **{name: _comparison(op) for name, op in COMPARISONS.items()},
        **{name: _logic(f"aten::{op}") for name, op in LOGIC.items()},
        **{name: _fused_add(inner) for name, inner in FUSED_ADD.items()},
        "NOT": _unary("aten::logical_not"),
    }
)


def _terms(g: Emitter, *values, to_float: bool = False) -> list[Term]:
    return [Term(g, value) for value in promoted(g, *values, to_float=to_float)]


mode("ERFCINV")(lambda g, x: (1 - Term(g, floating(g, x))).erfinv().value)


@mode("FAST_TANH")
def fast_tanh(g, x):
    """A quotient of polynomials, also where it is far from the tanh."""
    term = Term(g, floating(g, x))
    square = term * term
    return (term * (square + 27) / (square * 9 + 27)).value


@mode("FLOOR_DIV")
def floor_div(g, x, y):
    """Floor division; of floats the quotient is rounded down: 1 // 0.1 is 10."""
    x, y = promoted(g, x, y)
    if _is_float(g, x):
        return g.call("aten::floor", g.call("aten::div", x, y))
    return g.call("aten::floor_divide", x, y)


@mode("MOD")
def mod(g, x, y):
    """Remainder, with the sign of the dividend for floats and that of the divisor for integers."""
    x, y = promoted(g, x, y)
    return g.call("aten::fmod" if _is_float(g, x) else "aten::remainder", x, y)


@mode("POW")
def power(g, x, y):
    """Always of floats. Exponents that are products, roots and inverses become these."""
    forms = {2: "square", 0.5: "sqrt", -1: "reciprocal", -0.5: "rsqrt"}
    exponent = _number(g, y, x)
    x, y = promoted(g, x, y, to_float=True)
    if exponent == 1:
        return x
    return g.call(f"aten::{forms[exponent]}", x) if exponent in forms else g.call("aten::pow", x, y)


def _number(g, value, other):
    """The number that ``value`` is, also as a constant tensor that broadcasts to ``other``; else None."""
    if not is_tensor(value):
        return value if isinstance(value, (int, float, np.number)) else None
    array = g.known(value)
    if array is None or array.size != 1 or not is_tensor(other) or array.ndim > rank(g, other):
        return None
    same = g.type(other).dtype == array.dtype  # else it takes part in the promotion
    return array.reshape(-1)[0].item() if same else None


@mode("PRELU")
def prelu(g, x, y):
    """x above zero, x y below; y may have any shape that broadcasts."""
    slope = _number(g, y, x)
    x, y = promoted(g, x, y)
    if _is_float(g, x) and slope is not None:
        return g.call("aten::leaky_relu", x, slope)
    if _is_float(g, x) and _is_per_channel(g, x, y):
        return g.call("aten::prelu", x, g.call("aten::reshape", y, [g.type(y).size]))
    term, slopes = Term(g, x), Term(g, y)
    return (term.call("clamp", min=0) + term.call("clamp", max=0) * slopes).value


def _is_per_channel(g: Emitter, x, slopes) -> bool:
    """Whether constant ``slopes`` broadcast along axis 1 of ``x``, and along no other."""
    shape, extents = g.type(slopes).shape, g.type(x).shape
    if g.known(slopes) is None or len(shape) > len(extents) or len(extents) < 2:
        return False
    padded = (1,) * (len(extents) - len(shape)) + tuple(shape)
    return padded[1] == extents[1] and math.prod(padded) == padded[1]


@mode("CLIP")
def clip(g, x, lower=None, upper=None):
    """Bounds are numbers or tensors; between bounds in the wrong order the lower one comes first."""
    if lower is None or upper is None:
        name, bound = ("MIN", upper) if lower is None else ("MAX", lower)
        limit = {"min": lower} if upper is None else {"max": upper}
        clamped = _clamped(g, x, limit)
        return MODES[name](g, x, bound) if clamped is None else clamped
    clamped = _clamped(g, x, {"min": lower, "max": upper})
    if clamped is not None:
        return clamped
    x, lower, upper = _terms(g, x, lower, upper)
    return (x <= lower).where(lower, x.call("minimum", upper)).value


def _clamped(g: Emitter, x, bounds: dict[str, Any]) -> Any:
    """A clamp where the bounds are numbers in order, else None."""
    if not is_tensor(x) or any(_number(g, bound, x) is None for bound in bounds.values()):
        return None
    x, *tensors = promoted(g, x, *bounds.values())
    numbers = [np.asarray(g.known(tensor)).item() for tensor in tensors]
    return (
        g.call("aten::clamp", x, **dict(zip(bounds, numbers, strict=True)))
        if sorted(numbers) == numbers
        else None
    )


@mode("FUSE_MUL_ADD3")
def fuse_mul_add3(g, x, y, z):
    x, y, z = _terms(g, x, y, z)
    return (x * y + z).value


@mode("FUSE_MUL_ADD4")
def fuse_mul_add4(g, x, y, z, w):
    x, y, z, w = _terms(g, x, y, z, w)
    return (x * y + z * w).value


@mode("COND_LEQ_MOV")
def cond_leq_mov(g, x, y, z):
    """z where x <= y, else zero."""
    x, y, z = _terms(g, x, y, z)
    return (x <= y).where(z, 0).value


@mode("COND_LT_MOV")
def cond_lt_mov(g, x, y, z):
    x, y, z = _terms(g, x, y, z)
    return (x < y).where(z, 0).value


@mode("SWITCH_GT0")
def switch_gt0(g, x, y):
    """y where x is positive, else zero."""
    x, y = _terms(g, x, y)
    return (x > 0).where(y, 0).value


@mode("RMULH")
def rmulh(g, x, y):
    """The upper half of a product of integers, rounded; of signed ones twice that."""
    x, y = _terms(g, x, y)
    bits = x.dtype.itemsize * 8 - (x.dtype.kind == "i")
    product = x.to(np.int64) * y.to(np.int64) + (1 << (bits - 1))
    return product.floor_divide(1 << bits).to(x.dtype).value
