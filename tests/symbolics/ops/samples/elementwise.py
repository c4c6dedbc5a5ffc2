"""Elementwise ops beyond those of a convolutional network."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import POSITIVE, Sample, X, rows

NOT_CAFFE = ("onnx", "tflite")
Y = normal(1, 2, 3, 5, 7)
ROW = normal(2, 5, 1)
INSIDE = np.tanh(X)  # between -1 and 1
ABOVE_ONE = POSITIVE + 1
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], np.float32)
HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 3.25, -3.75, 0, 7], np.float32)
QUADRANTS = np.array([1, 1, -1, -1, 0.0, -0.0, 0.0, -0.0, np.inf, -np.inf, 3], np.float32)
STEEP = np.array([1e-20, 3e30, -2e30, -1, 1e-7, -5, 0, 1, 0, 4], np.float32)
BESIDE_STEEP = np.array([-1e-20, 2, -1e-3, -3e30, -1, 0, 0, -0.001, -2, 4], np.float32)
BESIDE = np.array([2, -2, 2, -2, 1, 1, -1, -1, np.inf, np.inf, np.inf], np.float32)
TINY = np.array([1e-7, -1e-7, 1e-4, -3e-3, 0.25, 0.0], np.float32)
WHOLE = np.array([[-7, 7, -7, 7], [0, 1, 2, -128]], np.int32)
DIVISORS = np.array([3, 3, -3, -3], np.int32)
FLAGS = X > 0
OTHER_FLAGS = Y > 0

SIGNED = np.arange(-4, 5)
ONE = [Sample([X]), Sample([normal(1, 2, 5)])]
UNIT = [Sample([INSIDE]), Sample([INSIDE[0, 0]])]
PAIR = [Sample([X, Y]), Sample([X, ROW], targets=NOT_CAFFE), Sample([X, Const(Y[:1, :, :1, :1])])]
COMPARED = [
    *PAIR,
    Sample([HALVES, HALVES.round()]),
    # Caffe compares by differences, which say nothing of NaN
    Sample([SPECIAL, Const(np.full(1, np.inf, np.float32))], targets=NOT_CAFFE),
    Sample([SPECIAL[:, None], SPECIAL], targets=NOT_CAFFE),
    Sample([WHOLE, DIVISORS]),
]
LOGICAL = [Sample([FLAGS, OTHER_FLAGS]), Sample([FLAGS, OTHER_FLAGS[0, 0]])]
CLASSIFIED = [Sample([SPECIAL]), Sample([X])]
CHANNEL = Const(np.array([0.25, -0.5, 2], np.float32))
DIVIDED = [
    Sample([X, ABOVE_ONE]),
    Sample([X, Const(np.array([-0.75], np.float32))]),
    Sample([WHOLE, DIVISORS]),
]
BITS = [
    Sample([WHOLE, DIVISORS], onnx_since=12),
    Sample([np.array(13, np.int64), Const(np.array(7, np.int64))], {}, NOT_CAFFE, onnx_since=12),
    Sample([np.int64([[-4000000, -1], [0, 4000000]]), Const(np.int64([5, -3]))], onnx_since=12),
    Sample([np.uint8([255, 170, 1]), np.uint8([[15], [0]])], onnx_since=12),
]
SHIFTED = [
    Sample([WHOLE, np.array([0, 1, 3, 20], np.int32)]),
    Sample([np.abs(WHOLE), Const(np.array(2, np.int32))]),
]
LONG = np.array([-(1 << 63), -(1 << 40) - 7, -1, 0, 3, (1 << 31) + 5, (1 << 62) + (1 << 33)], np.int64)
SHIFTED_LONG = [
    Sample([LONG, Const(np.array(by, np.int64))], targets=("tflite",)) for by in (0, 1, 5, 31, 32, 40, 63)
] + [Sample([LONG[:, None], np.array([0, 1, 33, 62, 63], np.int64)], targets=("tflite",))]

FUNCTIONS = ("sin", "cos", "tan", "sinh", "cosh", "asinh", "erf", "erfc", "expm1", "exp2")
SHAPES = ("silu", "mish", "hardswish", "hardsigmoid", "softsign", "tanhshrink", "selu", "log_sigmoid")

SAMPLES: dict[str, list[Sample]] = {
    **rows(__file__, "SAMPLES", globals()),
    **{f"aten::{name}": [*ONE, Sample([TINY])] for name in FUNCTIONS},
    **{f"aten::{name}": ONE for name in ("deg2rad", "rad2deg", *SHAPES)},
    **{f"aten::{name}": UNIT for name in ("asin", "acos", "atanh", "erfinv")},
    **{f"aten::{name}": [Sample([POSITIVE])] for name in ("log2", "log10")},
    **{f"aten::{name}": [*ONE, Sample([HALVES])] for name in ("trunc", "frac", "round", "sign")},
    **{f"aten::{name}": DIVIDED for name in ("fmod", "remainder", "floor_divide")},
    **{f"aten::{name}": COMPARED for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"aten::logical_{name}": LOGICAL for name in ("and", "or", "xor")},
    **{f"aten::{name}": CLASSIFIED for name in ("isnan", "isinf", "isposinf", "isneginf", "isfinite")},
    **{f"aten::bitwise_{name}": BITS for name in ("and", "or", "xor")},
}
