"""megengine.functional.tensor: what makes, repeats, moves and picks elements."""

import numpy as np

from .common import BYTES, CUBE, FLAGS, HALVES, MATRIX, SCALAR, VECTOR, WHOLE, Known, X, call, numbers


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

TENSOR = {
    "zeros": FILLED,
    "ones": FILLED,
    "full": [
        call((2, 3), 0.5),
        call((2, 3), 2),
        call((2, 3), True),
        call((), 1.5),
        call(4, 2, dtype="float32"),
        call((2,), 2.7, dtype="int32"),
        call((Known(2), 1), 1.5),
        call(Known(2, 1), 3),
    ],
    "zeros_like": LIKE,
    "ones_like": LIKE,
    "full_like": [call(MATRIX, 2), call(WHOLE, 2.7), call(WHOLE, -3), call(HALVES, 0.1), call(BYTES, 7)],
    "arange": [
        call(6),
        call(1, 7),
        call(1, 7, 2),
        call(0, 1, 0.3),
        call(7, 1, -2),
        call(0.5, 3),
        call(6, dtype="int32"),
        call(0, 3, 0.7, dtype="int32"),
        call(Known(4)),
        call(1, Known(5), Known(2)),
        call(3, dtype="float16"),
        call(0, 100, 0.1),
    ],
    "linspace": [
        call(0, 1, 6),
        call(3, -2, 4),
        call(0, 10, 7, dtype="int32"),
        call(0, 1, 1),
        call(0, 1, Known(5)),
        call(-1.5, 2.25, 100),
    ],
    "eye": [
        call(3),
        call(3, 5),
        call(4, 2, dtype="int32"),
        call(Known(3)),
        call(Known(2, 3)),
        call(2, dtype="float16"),
    ],
    "diag": [
        call(MATRIX),
        call(MATRIX, 1),
        call(MATRIX, -2),
        call(MATRIX, k=3),
        call(VECTOR),
        call(VECTOR, 2),
        call(VECTOR, -1),
        call(WHOLE, 1),
        call(WHOLE[0]),
    ],
    "broadcast_to": [
        call(numbers(1, 3, 1), (2, 3, 4)),
        call(VECTOR, (3, 5)),
        call(VECTOR, (2, 1, 5)),
        call(SCALAR, (2, 2)),
        call(X, X.shape),
        call(VECTOR, Known(3, 5)),
        call(VECTOR, (Known(3), 5)),
        call(WHOLE, [2, 2, 3]),
        call(FLAGS, (2, 2, 3)),
        call(HALVES, (2, 3, 4)),
    ],
    "copy": [call(X), call(WHOLE)],
    "repeat": [
        call(CUBE, 2),
        call(CUBE, 3, 1),
        call(CUBE, repeats=2, axis=0),
        call(WHOLE, 2, 1),
        call(VECTOR, 1),
        call(FLAGS, 2),
    ],
    "tile": [
        call(MATRIX, (2, 3)),
        call(MATRIX, (1, 1)),
        call(MATRIX, [2, 1, 1]),
        call(VECTOR, (2,)),
        call(VECTOR, (2, 1)),
        call(VECTOR, Known([3])),
        call(WHOLE, (1, 2)),
        call(MATRIX, (Known(2), 1)),
    ],
    "roll": [
        call(CUBE, 1),
        call(CUBE, 5, 1),
        call(CUBE, -1, -1),
        call(CUBE, (1, -2), (0, 2)),
        call(CUBE, [1, 1], [1, 1]),
        call(WHOLE, 0, 1),
        call(FLAGS, 1, 1),
    ],
    "meshgrid": [
        call(VECTOR, numbers(3)),
        call(VECTOR, numbers(3), indexing="ij"),
        call(VECTOR, numbers(3), numbers(2)),
        call(VECTOR, numbers(3), numbers(2), indexing="ij"),
        call(WHOLE[0], WHOLE[1]),
    ],
    "gather": [
        call(CUBE, 1, ints([[0, 2, 1, 0]], [[1, 1, 2, 2]])),
        call(CUBE, 0, ints([[0, 1, 0, 1], [1, 1, 1, 0]])),
        call(CUBE, -1, ints([[3], [0], [1]], [[2], [1], [0]])),
        call(MATRIX, 0, ints([2, 1])),
        call(WHOLE, 1, Known([[2, 0], [1, 1]])),
        call(HALVES, 1, ints([-1], [0], [2])),
    ],
    "scatter": [
        call(CUBE, 1, ints([[0, 2, 1, 0]], [[1, 1, 2, 2]]), numbers(2, 1, 4, seed=9)),
        call(MATRIX, 0, ints([2, 1, 0, 0]), numbers(1, 4, seed=9)),
        call(WHOLE, 1, Known([[2, 0], [1, 0]]), ints([7, 8], [9, 10])),
        call(MATRIX, -1, ints([2], [1], [0]), numbers(3, 1, seed=9)),
    ],
}

SAMPLES = {
    **{f"megengine.functional.tensor.{name}": calls for name, calls in TENSOR.items()},
    "Tensor.to": [call(X, "cpu0")],
    "Tensor.detach": [call(X)],
    "Tensor._broadcast": [call(VECTOR, 3, 5), call(VECTOR, (3, 5))],
    "opdef.Copy": [call(X)],
    "opdef.Identity": [call(X)],
}
