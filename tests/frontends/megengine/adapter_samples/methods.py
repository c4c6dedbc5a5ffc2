"""Methods and operators of Tensor."""

import numpy as np

from .common import (
    BINARY,
    BYTES,
    CHANNEL,
    CUBE,
    FLAGS,
    MATRIX,
    POSITIVE,
    REDUCTION,
    REFLECTED,
    SCALAR,
    UNARY,
    WHOLE,
    Known,
    X,
    call,
)
from .elemwise import POWERS

METHODS = {
    **{f"__{prefix}{name}__": BINARY for prefix in ("", "i") for name in ("add", "sub", "mul")},
    **{
        f"__{prefix}{name}__": [each for each in BINARY if each.args[1] is not CHANNEL]
        for prefix in ("", "i")
        for name in ("truediv", "floordiv")
    },
    **{f"__r{name}__": REFLECTED for name in ("add", "sub", "mul", "truediv", "floordiv")},
    **dict.fromkeys(("__neg__", "__abs__"), UNARY),
    "__pow__": POWERS,
    **dict.fromkeys(("mean", "sum", "max", "min"), REDUCTION),
    "reshape": [
        call(X, 6, 35),
        call(X, (2, -1)),
        call(X, -1),
        call(X, [3, 70]),
        call(X, Known(2, 105)),
        call(X, Known([2]), 3, -1),
        call(X, (2, Known([3]), 35)),
    ],
    "flatten": [call(X), call(SCALAR), call(MATRIX)],
    "transpose": [call(X, 0, 2, 3, 1), call(X, (3, 1, 2, 0)), call(CUBE, [2, 0, 1]), call(MATRIX, 1, "x", 0)],
    "astype": [
        call(MATRIX, "int32"),
        call(MATRIX, "float16"),
        call(WHOLE, "float32"),
        call(BYTES, dtype="int32"),
        call(MATRIX, np.dtype("float32")),
        call(WHOLE, "bool"),
        call(FLAGS, "float32"),
        call(POSITIVE[0, 0], "uint8"),
        call(MATRIX, "int8"),
    ],
}

SAMPLES = {f"Tensor.{name}": calls for name, calls in METHODS.items()}
