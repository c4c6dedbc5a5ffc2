"""megengine.functional.elemwise."""

import numpy as np

from .common import (
    BINARY,
    BYTES,
    CHANNEL,
    HALVES,
    MATRIX,
    POSITIVE,
    POSITIVE_UNARY,
    SCALAR_FIRST,
    UNARY,
    VECTOR,
    WHOLE,
    X,
    call,
)

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
ELEMWISE = {
    **dict.fromkeys(("abs", "neg", "square", "ceil", "floor", "tanh", "exp"), UNARY),
    **dict.fromkeys(("log", "sqrt"), POSITIVE_UNARY),
    **dict.fromkeys(("add", "sub", "mul", "maximum", "minimum"), BINARY + SCALAR_FIRST),
    **dict.fromkeys(
        ("div", "floor_div"), [each for each in BINARY if each.args[1] is not CHANNEL] + SCALAR_FIRST
    ),
    "pow": POWERS,
    "clip": [
        call(X, -1.5, 3),
        call(X, lower=0),
        call(X, upper=0.5),
        call(WHOLE, -1, 3),
        call(WHOLE, -1.5, 3.5),
        call(HALVES, -1, 1),
        call(HALVES, -1.5, 1.25),
        call(BYTES, 2, 100),
        call(WHOLE, np.float32(-1.5), 3),
    ],
}

SAMPLES = {f"megengine.functional.elemwise.{name}": calls for name, calls in ELEMWISE.items()}
