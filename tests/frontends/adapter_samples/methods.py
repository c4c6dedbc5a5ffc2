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
    VECTOR,
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
    "__getitem__": [
        call(X, 1),
        call(X, -1),
        call(X, (0, -2)),
        call(X, slice(1, None)),
        call(X, (slice(None), slice(0, 2), slice(1, -1), slice(None, None, 3))),
        call(X, (Ellipsis, 2)),
        call(X, (1, Ellipsis, slice(2, 5, 2))),
        call(X, Ellipsis),
        call(X, (slice(-1, None),)),
        call(MATRIX, (None, 1)),
        call(MATRIX, (slice(None), None, slice(1, 3))),
        call(MATRIX, (Ellipsis, None)),
        call(MATRIX, (Known(1), Known(-1))),
        call(MATRIX, Known(2)),
        call(MATRIX, slice(Known(1), Known(3))),
        call(VECTOR, slice(None, None, 2)),
        call(VECTOR, 0),
        call(VECTOR, slice(1, 100)),
        call(MATRIX, (0, 1)),
    ],
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
