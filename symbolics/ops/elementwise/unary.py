"""Elementwise unary ops that differ only by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import (
    AbsoluteAccuracy,
    Bounded,
    Clamp,
    FixedRange,
    Homogeneous,
    IntegerSteps,
    SeesSignOfZero,
    Trait,
)

# What a target says: (since, operator) for ONNX, the operator for TFLite, (layer, parameters) for Caffe.
OnnxForm = tuple[int, str]
CaffeForm = tuple[str, dict[str, Any]] | None


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Returns the logistic function to a few units in the last place, also of results next to 0."""
    small = np.exp(-np.abs(x))  # exp of a negative number never overflows
    return (np.where(x >= 0, 1, small) / (1 + small)).astype(x.dtype)


# name: (kernel, dtypes, ONNX, TFLite, Caffe; None where a function below says it)
TABLE: dict[str, tuple[Callable[[np.ndarray], np.ndarray], tuple[str, ...], OnnxForm, str, CaffeForm]] = {
    "abs": (np.abs, NUMBERS, (6, "Abs"), "", ("AbsVal", {})),  # see abs_tflite
    "neg": (np.negative, NUMBERS, (6, "Neg"), "NEG", None),  # see neg_caffe
    "exp": (np.exp, FLOATS, (6, "Exp"), "EXP", ("Exp", {})),
    "log": (np.log, FLOATS, (6, "Log"), "LOG", ("Log", {})),
    "sqrt": (np.sqrt, FLOATS, (6, "Sqrt"), "SQRT", ("Power", {"power": 0.5})),
    "reciprocal": (lambda x: 1 / x, FLOATS, (6, "Reciprocal"), "", ("Power", {"power": -1.0})),
    "square": (np.square, NUMBERS, (0, ""), "", ("Power", {"power": 2.0})),
    "rsqrt": (lambda x: 1 / np.sqrt(x), FLOATS, (0, ""), "", ("Power", {"power": -0.5})),
    "floor": (np.floor, FLOATS, (6, "Floor"), "FLOOR", None),
    "ceil": (np.ceil, FLOATS, (6, "Ceil"), "CEIL", None),
    "sigmoid": (sigmoid, FLOATS, (6, "Sigmoid"), "LOGISTIC", ("Sigmoid", {})),
    "tanh": (np.tanh, FLOATS, (6, "Tanh"), "TANH", ("TanH", {})),
    "relu": (lambda x: np.maximum(x, 0), NUMBERS, (6, ""), "", ("ReLU", {})),  # see relu_onnx6
}

# Results of LOGISTIC and TANH have these ranges in integers, and no others.
TRAITS: dict[str, list[Trait]] = {
    "abs": [Homogeneous(), Bounded(0)],
    "exp": [Bounded(0)],
    "neg": [IntegerSteps(lambda g, x: idioms.integer_steps.neg(g, x))],
    "reciprocal": [SeesSignOfZero(0)],
    "relu": [Clamp(0), Homogeneous()],
    "rsqrt": [SeesSignOfZero(0), Bounded(0)],
    "sigmoid": [FixedRange(0, 1, in_int16=True), AbsoluteAccuracy(), Bounded(0, 1)],
    "sqrt": [Bounded(0)],
    "square": [IntegerSteps(lambda g, x: idioms.integer_steps.square(g, x)), Bounded(0)],
    "tanh": [FixedRange(-1, 1, in_int16=True), Bounded(-1, 1)],
}


def _op(name: str) -> Op:
    kernel, dtypes, (since, onnx_type), tflite_type, caffe_form = TABLE[name]
    traits = TRAITS.get(name, [])
    op = Op(f"aten::{name}", args=[Tensor("x", dtypes)], result=same_as("x"), layout=ANY, traits=traits)
    op.reference(lambda x: kernel(x))
    if onnx_type:
        op.onnx(since)(lambda g, x: g.op(onnx_type, x))
    if tflite_type:
        op.tflite()(lambda g, x: g.op(tflite_type, x))
    if caffe_form is not None:
        layer, parameters = caffe_form
        op.caffe()(lambda g, x: g.op(layer, x, **parameters))
    return op


UNARY = {name: _op(name) for name in TABLE}


@UNARY["log"].caffe("mnn")  # MNN takes the default of -1 for the base itself
def log_caffe(g, x):
    return g.op("Log", x, base=math.e)


@UNARY["abs"].tflite(since=12)  # of integers
def abs_tflite12(g, x):
    return abs_tflite(g, x) if x.dtype == np.int64 else g.op("ABS", x)


@UNARY["abs"].tflite()
def abs_tflite(g, x):
    return g.op("MAXIMUM", x, g.op("NEG", x)) if x.dtype.kind == "i" else g.op("ABS", x)


@UNARY["relu"].onnx(since=6)
def relu_onnx6(g, x):
    """ONNX Runtime has no Relu of int64; a comparison has the sign in float64."""
    if x.dtype.name != "int64":
        return g.op("Relu", x)
    positive = g.op("Greater", g.cast(x, "float64"), g.const(0, np.float64), dtype=bool)
    return g.op("Mul", x, g.cast(positive, "int64"))


@UNARY["relu"].onnx(since=12)
def relu_onnx12(g, x):
    return g.op("Max", x, g.const(0, np.int64)) if x.dtype.name == "int64" else g.op("Relu", x)


@UNARY["relu"].tflite()
def relu_tflite(g, x):
    return g.op("RELU", x) if x.dtype.kind == "f" else g.op("MAXIMUM", x, g.const(0))


UNARY["rsqrt"].tflite()(lambda g, x: idioms.tflite.inverse_root(g, x))
UNARY["floor"].caffe()(lambda g, x: idioms.caffe_numbers.floored(g, x))


@UNARY["ceil"].caffe()
def ceil_caffe(g, x):
    return g.op("Power", idioms.caffe_numbers.floored(g, g.op("Power", x, scale=-1.0)), scale=-1.0)


@UNARY["neg"].caffe()
def neg_caffe(g, x):
    if x.dtype.kind == "u":
        g.refuse(f"Caffe computes in float32, in which {x.dtype} does not wrap around")
    return g.op("Power", x, scale=-1.0)


UNARY["square"].decompose(lambda g, x: g.call("aten::mul", x, x))
UNARY["reciprocal"].decompose(lambda g, x: g.call("aten::div", g.constant(1, g.type(x).dtype), x))
UNARY["rsqrt"].decompose(lambda g, x: g.call("aten::reciprocal", g.call("aten::sqrt", x)))


OPS = list(UNARY.values())
