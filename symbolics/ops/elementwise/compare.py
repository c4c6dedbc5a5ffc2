"""Elementwise comparisons and logical ops with bool results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import ANY_DTYPE, FLOATS, NUMBERS, Op, Tensor
from tmconvert.symbolics.ops.elementwise.binary import added, difference, multiplied
from tmconvert.symbolics.results import broadcast
from tmconvert.symbolics.traits import SeesSignOfZero

Array = np.ndarray
BOOL = ("bool",)
LARGEST = float(np.finfo(np.float32).max)

# name: (kernel, dtypes, (since, operator of ONNX), operator of TFLite)
BINARY: dict[str, tuple[Callable[[Array, Array], Array], tuple[str, ...], tuple[int, str], str]] = {
    "eq": (np.equal, ANY_DTYPE, (11, "Equal"), "EQUAL"),
    "ne": (np.not_equal, ANY_DTYPE, (0, ""), "NOT_EQUAL"),
    "lt": (np.less, NUMBERS, (7, "Less"), "LESS"),
    "le": (np.less_equal, NUMBERS, (12, "LessOrEqual"), "LESS_EQUAL"),
    "gt": (np.greater, NUMBERS, (7, "Greater"), "GREATER"),
    "ge": (np.greater_equal, NUMBERS, (12, "GreaterOrEqual"), "GREATER_EQUAL"),
    "logical_and": (np.logical_and, BOOL, (7, "And"), "LOGICAL_AND"),
    "logical_or": (np.logical_or, BOOL, (7, "Or"), "LOGICAL_OR"),
    "logical_xor": (np.logical_xor, BOOL, (7, "Xor"), "NOT_EQUAL"),
}
# the same for one argument
UNARY: dict[str, tuple[Callable[[Array], Array], tuple[str, ...], tuple[int, str], str]] = {
    "logical_not": (np.logical_not, BOOL, (1, "Not"), "LOGICAL_NOT"),
    "isnan": (np.isnan, FLOATS, (9, "IsNaN"), ""),
    "isinf": (np.isinf, FLOATS, (10, "IsInf"), ""),
    "isposinf": (np.isposinf, FLOATS, (0, ""), ""),
    "isneginf": (np.isneginf, FLOATS, (0, ""), ""),
    "isfinite": (np.isfinite, FLOATS, (0, ""), ""),
    "signbit": (np.signbit, FLOATS, (0, ""), ""),
}


def _flags(x: TensorType) -> TensorType:
    return TensorType(np.dtype(bool), x.shape)


def _op(name: str) -> Op:
    kernel, dtypes, (since, onnx_type), tflite_type = BINARY[name]
    args = [Tensor("x", dtypes), Tensor("other", dtypes)]
    op = Op(f"aten::{name}", args=args, result=broadcast("x", "other", dtype="bool"), layout=ANY)
    op.reference(lambda x, other: kernel(x, other))
    if onnx_type:
        op.onnx(since)(lambda g, x, other: g.op(onnx_type, x, other, dtype=bool))
    op.tflite()(lambda g, x, other: g.op(tflite_type, x, other, dtype=bool))
    return op


def _test(name: str) -> Op:
    kernel, dtypes, (since, onnx_type), tflite_type = UNARY[name]
    traits = [SeesSignOfZero(0)] if name == "signbit" else []
    op = Op(f"aten::{name}", args=[Tensor("x", dtypes)], result=_flags, layout=ANY, traits=traits)
    op.reference(lambda x: kernel(x))
    if onnx_type:
        op.onnx(since)(lambda g, x: g.op(onnx_type, x, dtype=bool))
    if tflite_type:
        op.tflite()(lambda g, x: g.op(tflite_type, x, dtype=bool))
    return op


COMPARE = {**{name: _op(name) for name in BINARY}, **{name: _test(name) for name in UNARY}}
OPS = list(COMPARE.values())


@COMPARE["eq"].onnx(since=7)  # Equal had no floats
def eq_onnx7(g, x, other):
    if x.dtype.kind != "f":
        return g.op("Equal", x, other, dtype=bool)
    differ = g.op("Or", *(g.op(each, x, other, dtype=bool) for each in ("Less", "Greater")))
    # the sum is NaN where either is, or for infinities of unequal sign
    total, infinity = g.op("Add", x, other), g.const(np.array(np.inf, x.dtype))
    below = g.op("Less", total, infinity, dtype=bool)
    above = g.op("Greater", total, g.const(np.array(-np.inf, x.dtype)), dtype=bool)
    return g.op("And", g.op("Not", differ), g.op("Or", below, above))


formula(COMPARE["ne"])(lambda x, other: ~x.eq(other))
formula(COMPARE["le"])(lambda x, other: (x < other) | x.eq(other))
formula(COMPARE["ge"])(lambda x, other: (x > other) | x.eq(other))
formula(COMPARE["isnan"])(lambda x: x.ne(x))
formula(COMPARE["isinf"])(lambda x: x.abs().eq(np.inf))
formula(COMPARE["isposinf"])(lambda x: x.eq(np.inf))
formula(COMPARE["isneginf"])(lambda x: x.eq(-np.inf))
formula(COMPARE["isfinite"])(lambda x: x.abs() < np.inf)


@formula(COMPARE["signbit"])  # 1 / -0 is -infinity; the sign of a NaN is lost
def signbit(x: Term) -> Any:
    return (x < 0) | (x.reciprocal() < 0)


COMPARE["isinf"].caffe()(lambda g, x: idioms.caffe_numbers.above(g, g.op("AbsVal", x), LARGEST))
COMPARE["isposinf"].caffe()(lambda g, x: idioms.caffe_numbers.above(g, x, LARGEST))
COMPARE["isneginf"].caffe()(lambda g, x: idioms.caffe_numbers.above(g, g.op("Power", x, scale=-1.0), LARGEST))


@COMPARE["isfinite"].caffe()
def isfinite_caffe(g, x):
    """Compares the distance to infinity with zero; comparisons with NaN are false."""
    return idioms.caffe_numbers.above(g, g.op("Power", g.op("AbsVal", x), scale=-1.0, shift=LARGEST), -1.0)


@COMPARE["isnan"].caffe()
def isnan_caffe(g, x):
    return idioms.caffe_numbers.complement(g, idioms.caffe_numbers.above(g, g.op("AbsVal", x), -1.0))


@COMPARE["gt"].caffe()
def gt_caffe(g, x, other):
    return idioms.caffe_numbers.step(g, difference(g, x, other))


@COMPARE["lt"].caffe()
def lt_caffe(g, x, other):
    return gt_caffe(g, other, x)


COMPARE["ge"].caffe()(lambda g, x, other: _ordered_but(g, x, other, lt_caffe(g, x, other)))
COMPARE["le"].caffe()(lambda g, x, other: _ordered_but(g, x, other, gt_caffe(g, x, other)))


@COMPARE["eq"].caffe()
def eq_caffe(g, x, other):
    return _ordered_but(g, x, other, _apart(g, x, other))


@COMPARE["ne"].caffe()
def ne_caffe(g, x, other):
    return (
        idioms.caffe_numbers.complement(g, eq_caffe(g, x, other))
        if x.dtype.kind == "f"
        else _apart(g, x, other)
    )


COMPARE["logical_xor"].caffe()(lambda g, x, other: _apart(g, x, other))


def _apart(g: Any, x: Any, other: Any) -> Any:
    """Whether the two differ, except for NaN; the difference of equal infinities, NaN, counts as none."""
    return idioms.caffe_numbers.step(g, g.op("AbsVal", difference(g, x, other)))


def _ordered_but(g: Any, x: Any, other: Any, flags: Any) -> Any:
    """1 where neither operand is NaN and the flag is not set. Sizes have no NaN."""
    if x.dtype.kind != "f":
        return idioms.caffe_numbers.complement(g, flags)
    sizes = [g.op("AbsVal", value) for value in (x, other) if not value.is_constant]
    for value in (x, other):
        if value.is_constant and np.isnan(value.data).any():
            sizes.append(g.const(np.abs(value.data.astype(np.float32))))
    ordered = idioms.caffe_numbers.above(g, sizes[0] if len(sizes) == 1 else added(g, *sizes), -1.0)
    return difference(g, ordered, flags)


COMPARE["logical_and"].caffe()(lambda g, x, other: multiplied(g, x, other))
COMPARE["logical_or"].caffe()(lambda g, x, other: idioms.caffe_numbers.step(g, added(g, x, other)))
COMPARE["logical_not"].caffe()(lambda g, x: idioms.caffe_numbers.complement(g, x))
