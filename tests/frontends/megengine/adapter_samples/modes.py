"""Activations, and every mode of Elemwise as a raw operator."""

import numpy as np

from .common import (
    ACTIVATION,
    BYTES,
    CUBE,
    FLAGS,
    HALVES,
    MATRIX,
    OTHER_WHOLE,
    POSITIVE,
    SCALAR,
    SHORTS,
    UNARY,
    VECTOR,
    WHOLE,
    Known,
    X,
    call,
    made,
    numbers,
)
from .elemwise import INT8, SPECIAL

SLOPES = np.array([0.25, -0.5, 2], np.float32).reshape(1, 3, 1, 1)
PRELU = [
    call(X, SLOPES),
    call(X, SLOPES[0]),
    call(X, SCALAR),
    call(X, 0.25),
    call(X, VECTOR[:, None]),
    call(CUBE, CUBE[:, :, :1]),
    call(VECTOR, numbers(3, 1)),
    call(HALVES, 0.25),
    call(HALVES, VECTOR[:1]),
    call(WHOLE, 2),
    call(WHOLE, 0.25),
    call(WHOLE, OTHER_WHOLE),
    call(MATRIX, Known(2)),
]
FLOATS = [call(X), call(HALVES), call(SCALAR)]
ABOVE = [call(POSITIVE), call(np.abs(WHOLE) + np.int32(1))]
INSIDE = [call(MATRIX / 8), call(HALVES / 8)]
LOGICAL = [call(FLAGS, FLAGS[::-1])]
UNARY_MODES = {
    "ABS": UNARY,
    "NEGATE": UNARY,
    "SQUARE": UNARY,
    "SIGN": [*UNARY, call(SHORTS), call(SPECIAL[1:])],
    **dict.fromkeys(("CEIL", "FLOOR", "ROUND", "RELU", "RELU6"), UNARY),
    **dict.fromkeys(
        ("EXP", "EXPM1", "SIN", "COS", "TAN", "SINH", "COSH", "TANH", "ASINH", "SOFTPLUS"), UNARY
    ),
    **dict.fromkeys(("LOGSIGMOID", "HSIGMOID"), UNARY),
    **dict.fromkeys(("LOG", "LOG1P", "SQRT"), ABOVE),
    **dict.fromkeys(("ASIN", "ACOS", "ATANH", "ERFINV"), INSIDE),
    "ERFCINV": [call(MATRIX / 8 + 1)],
    "ACOSH": [call(POSITIVE + 1)],
    **dict.fromkeys(("ERF", "ERFC", "FAST_TANH", "GELU", "H_SWISH", "SIGMOID", "SILU"), FLOATS),
    "NOT": [call(FLAGS)],
}
NUMBERS = [
    call(MATRIX, numbers(3, 4, seed=2)),
    call(CUBE, CUBE[:, :1]),
    call(HALVES, MATRIX),
    call(WHOLE, OTHER_WHOLE),
    call(BYTES + 1, BYTES + 2),
    call(MATRIX, 2),
    call(WHOLE, 1.5),
]
INTEGERS = [
    call(WHOLE, OTHER_WHOLE),
    call(SHORTS, SHORTS[::-1]),
    call(INT8, INT8[::-1]),
    call(BYTES, BYTES[::-1]),
]
SHIFTED = [call(WHOLE, np.abs(OTHER_WHOLE)), call(BYTES, 2)]
BINARY_MODES = {
    **dict.fromkeys(("ADD", "SUB", "MUL", "MAX", "MIN", "TRUE_DIV", "FLOOR_DIV", "MOD", "ATAN2"), NUMBERS),
    **dict.fromkeys(("LOG_SUM_EXP", "EQ", "LT", "LEQ", "PRELU", "SWITCH_GT0", "FUSE_ADD_RELU"), NUMBERS),
    **dict.fromkeys(("FUSE_ADD_SIGMOID", "FUSE_ADD_TANH", "FUSE_ADD_H_SWISH"), NUMBERS[:3]),
    "POW": [call(POSITIVE, X), call(np.abs(WHOLE) + 1, OTHER_WHOLE)],
    **dict.fromkeys(("AND", "OR", "XOR"), LOGICAL),
    **dict.fromkeys(("SHL", "SHR"), SHIFTED),
    "RMULH": INTEGERS,
}
THREE = [
    call(MATRIX, MATRIX + 1, MATRIX - 2),
    call(MATRIX, 1.5, MATRIX[:1]),
    call(WHOLE, OTHER_WHOLE, WHOLE),
    call(WHOLE, 1.5, OTHER_WHOLE),
    call(HALVES, HALVES[:, :1], HALVES),
]
OTHER_MODES = {
    **dict.fromkeys(("FUSE_MUL_ADD3", "COND_LEQ_MOV", "COND_LT_MOV"), THREE),
    "CLIP": [*THREE, call(X, -1.5, 1.5), call(WHOLE, -1, 2)],
    "FUSE_MUL_ADD4": [call(MATRIX, MATRIX + 1, MATRIX - 2, MATRIX[:1]), call(WHOLE, 2, OTHER_WHOLE, WHOLE)],
}
CHOSEN = [
    call(FLAGS, numbers(2, 3), numbers(2, 3, seed=1)),
    call(FLAGS, WHOLE, OTHER_WHOLE),
    call(FLAGS, WHOLE, numbers(2, 3)),
    call(FLAGS, BYTES, BYTES[::-1]),
    call(FLAGS[:, :1], SCALAR, numbers(2, 3)),
    call(FLAGS, HALVES[:2, :3], numbers(2, 3)),
    call(np.isnan(SPECIAL), np.zeros(6, np.float32), SPECIAL),
]
TESTED = [
    call(SCALAR),
    call(np.array(3, np.int32)),
    call(SPECIAL),
    call(SPECIAL.astype(np.float16)),
    call(WHOLE),
    call(X),
]
NN = {
    "gelu": ACTIVATION,
    "prelu": PRELU,
    "softplus": UNARY,
    "logsigmoid": UNARY,
}
CAST = [
    (MATRIX, "int32"),
    (MATRIX, "float16"),
    (MATRIX, "bool"),
    (WHOLE, "float32"),
    (WHOLE, "uint8"),
    (FLAGS, "int8"),
]
COMPARED = [
    (SCALAR, SCALAR),
    (MATRIX, numbers(3, 4, seed=1)),
    (WHOLE, OTHER_WHOLE),
    (WHOLE, 1.5),
    (FLAGS, FLAGS[::-1]),
]

SAMPLES = {
    "opdef.Elemwise": [
        call(*each.args, mode=mode)
        for modes in (UNARY_MODES, BINARY_MODES, OTHER_MODES)
        for mode, calls in modes.items()
        for each in calls
    ],
    "opdef.ElemwiseMultiType": [
        *(call(*args, mode=mode, dtype="bool") for mode in ("EQ", "NEQ", "LT", "LEQ") for args in COMPARED),
        *(call(*each.args, mode=mode, dtype="bool") for mode in ("ISNAN", "ISINF") for each in TESTED[2:4]),
    ],
    "opdef.TypeCvt": [call(array, dtype=dtype) for array, dtype in CAST],
    "megengine.functional.math.sign": [*UNARY, call(SHORTS)],
    "megengine.functional.math.isnan": TESTED,
    "megengine.functional.math.isinf": TESTED,
    "megengine.functional.tensor.where": CHOSEN,
    **{f"megengine.functional.nn.{name}": calls for name, calls in NN.items()},
    "megengine.module.activation.GELU": [made()(X)],
    "megengine.module.activation.PReLU": [made()(X), made(3)(X), made(1, 0.5)(VECTOR)],
}
