"""megengine.functional.elemwise."""

import numpy as np

from .common import (
    ACTIVATION,
    BINARY,
    BYTES,
    CHANNEL,
    FLAGS,
    HALVES,
    MATRIX,
    OTHER_WHOLE,
    POSITIVE,
    POSITIVE_UNARY,
    SCALAR,
    SCALAR_FIRST,
    SHORTS,
    UNARY,
    VECTOR,
    WHOLE,
    Known,
    call,
    numbers,
    rows,
)


def is_tensor(value):
    return isinstance(value, np.ndarray)


FLOAT_TWO = np.array(2, np.float32)
INT8 = np.array([[1, 5, 44], [-3, 7, 100]], np.int8)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32)
SIGNED = np.array([0.0, -0.0, 2.5, -1.5], np.float32)
POWERS = [
    call(POSITIVE[0, 0], 0.5),
    call(POSITIVE[0, 0], -0.5),
    call(MATRIX, 2),
    call(MATRIX, 2.0),
    call(VECTOR, -1),
    call(MATRIX, 1),
    call(WHOLE, 2),
    call(HALVES, 2),
]
TENSOR_POWERS = [
    call(POSITIVE[0, 0], VECTOR[:, None]),
    call(2, MATRIX),
    call(1.5, WHOLE),
    call(MATRIX, 3),
    call(OTHER_WHOLE, WHOLE),
    call(np.abs(MATRIX), 1.25),
    call(HALVES, 3),
    call(MATRIX, Known(2)),
    call(MATRIX, Known([2])),
    call(WHOLE, FLOAT_TWO),
    call(MATRIX, FLOAT_TWO),
    call(VECTOR, FLOAT_TWO[None]),
]
DIVISIONS = [each for each in BINARY if each.args[1] is not CHANNEL] + SCALAR_FIRST
MODULI = [call(SHORTS, 3), call(WHOLE, -2), call(BYTES, 7), call(MATRIX, -1.5), call(HALVES, 0.75)]
COMPARED = [
    call(SCALAR, 2),
    call(SCALAR, SCALAR),
    call(np.array(3, np.int32), 1),
    call(np.array(3, np.int32), SCALAR),
    *BINARY,
    *SCALAR_FIRST,
    call(FLAGS, FLAGS[::-1]),
    call(FLAGS, True),
    call(MATRIX, MATRIX.round()),
    call(BYTES, 1),
    call(BYTES, BYTES.T.copy().reshape(2, 3)),
    call(SPECIAL, SPECIAL[:, None]),
    call(SPECIAL, 0),
    call(INT8, 300),
]
LOGICAL = [call(FLAGS, FLAGS[::-1]), call(FLAGS, FLAGS[0]), call(FLAGS, True), call(False, FLAGS)]
SHIFTS = np.array([[0, 1, 2], [3, 1, 4]], np.int32)
SHIFTED = [
    call(WHOLE, SHIFTS),
    call(WHOLE, 2),
    call(3, SHIFTS),
    call(BYTES, 1),
    call(INT8, 2),
    call(SHORTS, 3),
]
INSIDE = [call(MATRIX / 8), call(HALVES / 8), call(WHOLE // 7)]
ARITHMETIC = [*BINARY, *SCALAR_FIRST, call(INT8, 300)]
FLOAT_UNARY = [*UNARY, call(numbers(0, 3))]
ELEMWISE = {
    **rows(__file__, "ELEMWISE", globals()),
    **dict.fromkeys(("abs", "neg", "square", "ceil", "floor", "tanh", "exp"), UNARY),
    **dict.fromkeys(("log", "sqrt"), POSITIVE_UNARY),
    **dict.fromkeys(("add", "sub", "mul", "maximum", "minimum"), ARITHMETIC),
    **dict.fromkeys(("div", "floor_div"), DIVISIONS),
    **dict.fromkeys(("sin", "cos", "tan", "atan", "sinh", "cosh", "asinh"), FLOAT_UNARY),
    **dict.fromkeys(("asin", "acos", "atanh"), INSIDE),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), COMPARED),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), LOGICAL),
    **dict.fromkeys(("left_shift", "right_shift"), SHIFTED),
    **dict.fromkeys(("relu", "relu6", "hsigmoid"), UNARY),
    **dict.fromkeys(("sigmoid", "hswish"), ACTIVATION),
}

SAMPLES = {f"megengine.functional.elemwise.{name}": calls for name, calls in ELEMWISE.items()}
