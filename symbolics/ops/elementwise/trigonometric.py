"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.results import broadcast, same_as
from tmconvert.symbolics.traits import Bounded, SeesSignOfZero

Array = np.ndarray

# name: (kernel, (since, operator of ONNX), operator of TFLite)
TABLE: dict[str, tuple[Callable[[Array], Array], tuple[int, str], str]] = {
    "sin": (np.sin, (7, "Sin"), "SIN"),
    "cos": (np.cos, (7, "Cos"), "COS"),
    "tan": (np.tan, (7, "Tan"), ""),
    "asin": (np.arcsin, (7, "Asin"), ""),
    "acos": (np.arccos, (7, "Acos"), ""),
    "atan": (np.arctan, (7, "Atan"), ""),
    "sinh": (np.sinh, (9, "Sinh"), ""),
    "cosh": (np.cosh, (9, "Cosh"), ""),
    "asinh": (np.arcsinh, (9, "Asinh"), ""),
    "acosh": (np.arccosh, (9, "Acosh"), ""),
    "atanh": (np.arctanh, (9, "Atanh"), ""),
    "deg2rad": (np.deg2rad, (0, ""), ""),
    "rad2deg": (np.rad2deg, (0, ""), ""),
}


def _op(name: str) -> Op:
    kernel, (since, onnx_type), tflite_type = TABLE[name]
    traits = [Bounded(-1, 1)] if name in ("sin", "cos") else []
    op = Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY, traits=traits)
    op.reference(lambda x: kernel(x).astype(x.dtype))
    if onnx_type:
        op.onnx(since)(lambda g, x: g.op(onnx_type, x))
    if tflite_type:
        op.tflite()(lambda g, x: g.op(tflite_type, x))
    return op


TRIGONOMETRIC = {name: _op(name) for name in TABLE}
TRIGONOMETRIC["asin"].caffe()(lambda g, x: idioms.caffe_angles.arc_sine(g, x))
TRIGONOMETRIC["acos"].caffe()(lambda g, x: idioms.caffe_angles.arc_cosine(g, x))
TRIGONOMETRIC["atan"].caffe()(lambda g, x: idioms.caffe_angles.arc_tangent(g, x))


# pi in two parts: a product of the first with a number of turns below 2^15 is exact
PI_PARTS = (3.140625, 0.0009676535897932)
# sin(r) / r - 1 in r^2 on a half turn, Taylor's: the next term is below 6e-8
SINE = (-1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6)


def _half_turns(x: Term, half: Term, sign: Term) -> Term:
    """The sine of x minus ``half`` half turns, in -pi/2 to pi/2; negated where ``sign`` is odd."""
    rest = x - half * PI_PARTS[0] - half * PI_PARTS[1]
    square = rest * rest
    odd = (sign - (sign * 0.5).round() * 2).abs()
    return (rest + rest * square * square.horner(SINE)) * (1 - odd * 2)


@formula(TRIGONOMETRIC["sin"])
def sin(x: Term) -> Term:
    turns = (x * (1 / math.pi)).round()
    return _half_turns(x, turns, turns)


@formula(TRIGONOMETRIC["cos"])
def cos(x: Term) -> Term:
    turns = (x * (1 / math.pi) + 0.5).round()
    return _half_turns(x, turns - 0.5, turns)


formula(TRIGONOMETRIC["tan"])(lambda x: x.sin() / x.cos())
formula(TRIGONOMETRIC["asin"])(lambda x: x.atan2(((1 - x) * (x + 1)).sqrt()))
formula(TRIGONOMETRIC["acos"])(lambda x: ((1 - x) * (x + 1)).sqrt().atan2(x))


@formula(TRIGONOMETRIC["atan"])
def atan(x: Term) -> Term:
    """Reduces the argument: half angles up to tan(pi / 8); the reciprocal for large numbers."""
    size = x.abs()
    is_large = size > 1
    tangent = is_large.where(1 / is_large.where(size, 1), size)
    half = tangent / ((tangent * tangent + 1).sqrt() + 1)
    angle = half * (half * half).horner(idioms.caffe_angles.ARC) * 2
    angle = is_large.where(math.pi / 2 - angle, angle)
    return (x < 0).where(-angle, angle)


formula(TRIGONOMETRIC["sinh"])(lambda x: x.tanh() * x.cosh())  # tanh keeps what is small
formula(TRIGONOMETRIC["cosh"])(lambda x: (x.exp() + (-x).exp()) * 0.5)


@formula(TRIGONOMETRIC["asinh"])  # |x| + sqrt(x^2 + 1) less 1, without a difference of near numbers
def asinh(x: Term) -> Term:
    size, square = x.abs(), x * x
    return x.sign() * (size + square / ((square + 1).sqrt() + 1)).log1p()


@formula(TRIGONOMETRIC["acosh"])
def acosh(x: Term) -> Term:
    above = x - 1
    return (above + (above * (x + 1)).sqrt()).log1p()


formula(TRIGONOMETRIC["atanh"])(lambda x: (x * 2 / (1 - x)).log1p() * 0.5)
formula(TRIGONOMETRIC["deg2rad"])(lambda x: x * (math.pi / 180))
formula(TRIGONOMETRIC["rad2deg"])(lambda x: x * (180 / math.pi))


atan2 = Op(
    "aten::atan2",
    args=[Tensor("x", FLOATS), Tensor("other", FLOATS)],
    result=broadcast("x", "other"),
    layout=ANY,
    traits=[SeesSignOfZero(0, 1)],
)


@atan2.reference
def atan2_ref(x: Array, other: Array) -> Array:
    """The angle of the point (other, x)."""
    return np.arctan2(x, other)


@atan2.tflite(since=10)  # which does not broadcast
def atan2_tflite10(g, x, other):
    shape: Any = broadcast_shapes(x.shape, other.shape)
    return g.op("ATAN2", *(idioms.tflite.expanded(g, value, shape) for value in (x, other)))


TRIGONOMETRIC["atan"].tflite(since=10)(lambda g, x: atan2_tflite10(g, x, g.const(1)))
atan2.caffe()(lambda g, x, other: idioms.caffe_angles.angle(g, x, other, g.result_types[0].shape))


@formula(atan2)
def atan2_octants(x: Term, other: Term) -> Term:
    """Computes the angle in the first octant, then mirrors it; zeros and infinities keep signs.

    All is finite, so mirrors are products with 0 and 1.
    """
    limits = np.finfo(x.dtype)
    height, width = x.abs(), other.abs()
    longer = height.maximum(width).clamp(min=float(limits.tiny), max=float(limits.max))
    shorter = height.minimum(width).clamp(max=float(limits.max))
    angle = (shorter / longer).atan()
    angle = angle + (height > width).to(x.dtype) * (math.pi / 2 - angle * 2)
    angle = angle + other.signbit().to(x.dtype) * (math.pi - angle * 2)
    return angle * (1 - x.signbit().to(x.dtype) * 2)


OPS = [*TRIGONOMETRIC.values(), atan2]
