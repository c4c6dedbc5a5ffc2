"""megengine.functional.tensor: what makes, repeats, moves and picks elements."""

import numpy as np

from .common import BYTES, FLAGS, HALVES, MATRIX, SCALAR, VECTOR, WHOLE, Known, X, call, rows


def ints(*values):
    return np.array(values, np.int32)


FILLED = [
    call((2, 3)),
    call(4),
    call((2, 3), dtype="int32"),
    call([2, 3], dtype=np.dtype("float16")),
    call((Known(2), 3)),
    call(Known(2, 3)),
    call((2, 0)),
    call((2,), dtype="bool"),
]
LIKE = [call(MATRIX), call(WHOLE), call(HALVES), call(FLAGS), call(SCALAR), call(BYTES)]

TENSOR = rows(__file__, "TENSOR", globals())

SAMPLES = {
    **{f"megengine.functional.tensor.{name}": calls for name, calls in TENSOR.items()},
    "Tensor.to": [call(X, "cpu0")],
    "Tensor.detach": [call(X)],
    "Tensor._broadcast": [call(VECTOR, 3, 5), call(VECTOR, (3, 5))],
    "opdef.Copy": [call(X)],
    "opdef.Identity": [call(X)],
}
