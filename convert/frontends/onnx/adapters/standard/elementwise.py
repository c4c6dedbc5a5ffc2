"""Elementwise arithmetic, comparisons, logic and casts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.narrow_types import narrowed
from tmconvert.frontends.onnx.adapters.standard.unsigned import in_signed
from tmconvert.frontends.onnx.adapters.values import cast, element_type, like, rank, reshaped
from tmconvert.ir.emitter import Emitter

OPERATORS = OperatorTable()
Binary = Callable[[Emitter, Any, Any], Any]

# ---- of one tensor

_SAME = """
    Abs Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp Log Neg Reciprocal Relu Sigmoid Sign Sin Sinh Sqrt
    Tan Tanh
"""
_UNARY = {
    **{name: name.lower() for name in _SAME.split()},
    "BitwiseNot": "bitwise_not",
    "Not": "logical_not",
}
_ROUNDINGS = {"Ceil": "ceil", "Floor": "floor", "Round": "round"}


def _unary(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, X, consumed_inputs=None):
        return _call(op)(g, X)


for _name, _op in (_UNARY | _ROUNDINGS).items():
    _unary(_name, _op)


OPERATORS.add("Identity")(lambda g, input: input)
OPERATORS.add("IsNaN")(lambda g, X: g.call("aten::isnan", X))


@OPERATORS.add("IsInf")
def is_inf(g, X, *, detect_negative=1, detect_positive=1):
    if detect_negative and detect_positive:
        return g.call("aten::isinf", X)
    if detect_positive:
        return g.call("aten::isposinf", X)
    if detect_negative:
        return g.call("aten::isneginf", X)
    found = g.call("aten::isinf", X)
    return g.call("aten::logical_and", found, g.call("aten::logical_not", found))


@OPERATORS.add("Cast")
def cast_to(g, input, *, to, saturate=1, round_mode="up"):
    if isinstance(to, str):  # before opset 6
        names = {"DOUBLE": "float64", "FLOAT": "float32"}
        return cast(g, input, names.get(to, to.lower()))
    return narrowed(g, input, element_type(to), bool(saturate), round_mode)


@OPERATORS.add("BitCast")
def bit_cast(g, input, *, to):
    """Between integers of one size the bits of two's complement stay in a cast."""
    given, wanted = g.type(input).dtype, element_type(to)
    are_integers = given.kind in "iub" and wanted.dtype.kind in "iu"
    if not are_integers or wanted.bits != given.itemsize * 8:
        raise Refusal(
            f"BitCast of {given.name} to {wanted.name} takes the bits of one for those of the other"
        )
    return cast(g, input, wanted.dtype)


@OPERATORS.add("CastLike")
def cast_like(g, input, target_type, *, saturate=1, round_mode="up"):
    return cast(g, input, g.type(target_type).dtype)


@OPERATORS.add("Clip", since=11)
def clip(g, input, min=None, max=None):
    low, high = (None if bound is None else g.known(bound) for bound in (min, max))
    if all(bound is None or known is not None for bound, known in ((min, low), (max, high))):
        bounds = [None if known is None else known.reshape(-1)[0].item() for known in (low, high)]
        return clamped(g, input, *bounds)
    if min is not None:
        input = g.call("aten::maximum", input, reshaped(g, min, []))
    return input if max is None else g.call("aten::minimum", input, reshaped(g, max, []))


@OPERATORS.add("Clip")
def clip6(g, input, *, min=None, max=None, consumed_inputs=None):
    return clamped(g, input, min, max)


def clamped(g, x, low, high):
    """Clips to numbers or None; the upper bound counts where the lower one is above it."""
    if low is None and high is None:
        return x
    return g.call("aten::clamp", x, low, high)


# ---- of two tensors


def _call(op: str) -> Callable[..., Any]:
    return in_signed(op, lambda g, *operands: g.call(f"aten::{op}", *operands))


def _div(g, a, b):
    if g.type(a).dtype.kind == "f":
        return g.call("aten::div", a, b)
    if _has_sizes(g, a) and _has_sizes(g, b):
        return g.call("aten::floor_divide", a, b)
    return in_signed("div", lambda g, a, b: g.call("tm::trunc_divide", a, b))(g, a, b)


def _has_sizes(g: Emitter, x) -> bool:
    """Whether all elements are known and none is negative."""
    sizes = g.sizes(x)
    return sizes is not None and all(size >= 0 for size in sizes.reshape(-1))


def _pow(g, a, b):
    dtype = g.type(a).dtype
    if g.type(b).dtype == dtype:
        return g.call("aten::pow", a, b)
    if dtype.kind == "f":
        return g.call("aten::pow", a, cast(g, b, dtype))
    wide = np.promote_types(dtype, g.type(b).dtype)  # the result has the type of the base
    return cast(g, g.call("aten::pow", cast(g, a, wide), cast(g, b, wide)), dtype)


_BINARY: dict[str, Binary] = {
    "Add": _call("add"),
    "Sub": _call("sub"),
    "Mul": _call("mul"),
    "Div": _div,
    "Pow": _pow,
    "And": _call("logical_and"),
    "Or": _call("logical_or"),
    "Xor": _call("logical_xor"),
    "Equal": _call("eq"),
    "Greater": _call("gt"),
    "Less": _call("lt"),
    "GreaterOrEqual": _call("ge"),
    "LessOrEqual": _call("le"),
    "BitwiseAnd": _call("bitwise_and"),
    "BitwiseOr": _call("bitwise_or"),
    "BitwiseXor": _call("bitwise_xor"),
}


def _binary(name: str, apply: Binary) -> None:
    @OPERATORS.add(name, since=7)
    def adapter(g, A, B):
        return apply(g, A, B)

    @OPERATORS.add(name)
    def adapter1(g, A, B, *, axis=None, broadcast=0, consumed_inputs=None):
        return apply(g, A, aligned(g, A, B, axis) if broadcast else B)


def aligned(g: Emitter, a, b, axis: int | None) -> Any:
    """Reshapes the second operand for broadcasting as before opset 7: its axes begin at ``axis`` of a."""
    missing = 0 if axis is None else rank(g, a) - (axis % rank(g, a)) - rank(g, b)
    return b if missing <= 0 else reshaped(g, b, [*g.type(b).shape, *[1] * missing])


for _name, _apply in _BINARY.items():
    _binary(_name, _apply)


@OPERATORS.add("PRelu")
def prelu_1(g, X, slope, **_):
    if g.type(slope).rank == 1 and g.type(X).rank > 2:  # a slope of each channel, not of the last axis
        slope = reshaped(g, slope, [-1] + [1] * (g.type(X).rank - 2))
    return prelu_7(g, X, slope)


@OPERATORS.add("PRelu", since=7)
def prelu_7(g, X, slope):
    zero = like(g, X, 0)
    if g.type(X).dtype.kind == "f" and g.type(slope).size == 1:
        known = g.known(slope)
        if known is not None:
            return g.call("aten::leaky_relu", X, negative_slope=known.reshape(-1)[0].item())
    shape, channels = g.type(slope).shape, g.type(X).rank - 2
    if (
        g.type(X).dtype.kind == "f"
        and channels >= 0
        and shape[1:] == (1,) * channels
        and len(shape) > channels
    ):
        return g.call("aten::prelu", X, reshaped(g, slope, [-1]))
    return g.call("aten::where", g.call("aten::lt", X, zero), g.call("aten::mul", X, slope), X)


OPERATORS.add("Mod")(lambda g, A, B, *, fmod=0: _call("fmod" if fmod else "remainder")(g, A, B))


@OPERATORS.add("BitShift")
def bit_shift(g, X, Y, *, direction):
    if direction not in ("LEFT", "RIGHT"):
        raise Refusal(f"direction {direction!r} is neither LEFT nor RIGHT")
    op, signed = f"bitwise_{direction.lower()}_shift", g.type(X).dtype.kind == "i"
    bits, known = g.type(X).dtype.itemsize * 8, g.known(Y)
    if not signed or (known is not None and ((known >= 0) & (known < bits)).all()):
        return _call(op)(g, X, Y)
    # other distances leave nothing but the sign
    outside = g.call(
        "aten::logical_or",
        *(g.call(f"aten::{at}", Y, like(g, Y, end)) for at, end in (("lt", 0), ("ge", bits))),
    )
    far = g.call("aten::where", outside, like(g, Y, bits - 1 if direction == "RIGHT" else 0), Y)
    shifted = g.call(f"aten::{op}", X, far)
    return shifted if direction == "RIGHT" else g.call("aten::where", outside, like(g, X, 0), shifted)


OPERATORS.add("Where")(lambda g, condition, X, Y: g.call("aten::where", condition, X, Y))


# ---- of any number


def _variadic(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, *data, consumed_inputs=None):
        return functools.reduce(lambda a, b: _call(op)(g, a, b), data)


for _name, _op in {"Max": "maximum", "Min": "minimum", "Sum": "add"}.items():
    _variadic(_name, _op)


@OPERATORS.add("Mean")
def mean(g, *data, consumed_inputs=None):
    whole = functools.reduce(lambda a, b: g.call("aten::add", a, b), data)
    return whole if len(data) == 1 else g.call("aten::div", whole, like(g, whole, len(data)))
