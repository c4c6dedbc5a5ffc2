"""Elements under a mask, by their numbers in a row, windows and pieces of one axis."""

import itertools

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, X
from .indexing import CUBE, FILES, ints

MASK = CUBE > 0
COLUMN = ints([[True], [False], [True], [True]])
NUMBERS = np.arange(60).reshape(3, 4, 5)


def number(value: object, dtype: object = np.float32) -> np.ndarray:
    return np.array(value, dtype)


SPLITS = [
    Sample([CUBE], {"split_sizes": [1, 0, 3], "dim": 1}, ("onnx", "tflite")),
    Sample([CUBE], {"split_sizes": [2, 1]}, FILES),
    Sample([CUBE], {"split_sizes": [5], "dim": -1}, FILES),
    Sample([X], {"split_sizes": [3, 4], "dim": 3}),
    *(
        Sample([NUMBERS.astype(t)], {"split_sizes": [2, 2], "dim": 1}, ("onnx", "tflite"))
        for t in ("int64", "bool")
    ),
]

SAMPLES: dict[str, list[Sample]] = {
    "aten::masked_fill": [
        Sample([CUBE, MASK, Const(number(-np.inf))], {}, FILES),
        Sample([CUBE, COLUMN, number(2.5)], {}, FILES),
        Sample([CUBE[0], MASK, Const(number(0))], {}, FILES),  # the mask has more axes
        Sample([NUMBERS, Const(MASK), Const(number(-7, np.int64))], {}, FILES),
        Sample([MASK, MASK[:, :1], Const(number(False, np.bool_))], {}, ("onnx", "tflite")),
    ],
    "aten::masked_scatter": [
        Sample([CUBE, MASK, normal(1, 8, 9)], {}, FILES),
        Sample([CUBE, COLUMN, normal(1, 50)], {}, FILES),
        Sample([CUBE[0], Const(MASK), normal(1, 60)], {}, FILES),
        Sample([NUMBERS, MASK, -NUMBERS], {}, FILES),
        Sample([CUBE, MASK & False, normal(1, 2)], {}, FILES),
    ],
    "aten::take": [
        Sample([CUBE, ints([3, -1], [59, 3])], {}, FILES),
        Sample([NUMBERS, Const(ints(7, 0).astype(np.int32))], {}, FILES),
        Sample([CUBE, np.array(-60)], {}, FILES),
    ],
    "aten::take_along_dim": [
        Sample([CUBE, ints([[0, 2, 1, 0, 1]], [[1, 1, 0, 2, 2]])], {"dim": 0}, FILES),
        Sample([CUBE[:1], ints([[3], [0]], [[1], [1]])], {"dim": 1}, FILES),
        Sample([NUMBERS, Const(ints([[4, 0]]))], {"dim": -1}, FILES),
        Sample([CUBE, ints([7, 8], [59, 0])], {}, FILES),
    ],
    "aten::index_fill": [
        Sample([CUBE, ints(2, 0, -1), Const(number(3))], {"dim": 1}, FILES),
        Sample([CUBE, Const(ints(1, 1)), number(-1)], {"dim": 0}, FILES),
        Sample([NUMBERS, ints(4).astype(np.int32), Const(number(-1, np.int64))], {"dim": -1}, FILES),
    ],
    "aten::diagonal_scatter": [
        Sample([CUBE[0], normal(1, 4)], {}, FILES),
        Sample([CUBE, normal(1, 4, 2)], {"offset": 1, "dim1": 2, "dim2": 0}, FILES),
        Sample([CUBE, normal(1, 3, 2)], {"offset": -2, "dim1": -2, "dim2": -1}, FILES),
        Sample([NUMBERS, -NUMBERS[:, 0, :4]], {"dim1": 1, "dim2": 2}, FILES),
    ],
    "aten::unfold": [
        Sample([CUBE], {"dimension": 1, "size": 2, "step": 1}, FILES),
        Sample([CUBE], {"dimension": -1, "size": 3, "step": 2}, FILES),
        Sample([CUBE], {"dimension": 2, "size": 2, "step": 2}, FILES),
        Sample([CUBE], {"dimension": 0, "size": 3, "step": 3}, FILES),
        Sample([NUMBERS], {"dimension": 0, "size": 1, "step": 2}, FILES),
    ],
    "aten::split_with_sizes": SPLITS,
    "aten::unbind": [Sample([CUBE], {}, FILES), Sample([X], {"dim": -3}), Sample([X[:1]], {})],
    "aten::histc": [
        Sample([CUBE], {"bins": 4, "min": -1, "max": 1.5}, ("onnx", "tflite")),
        Sample([CUBE], {"bins": 7}, ("onnx", "tflite")),
        Sample([number([2, 2, 2])], {"bins": 3}, ("onnx", "tflite")),
        Sample([number([0, 1, 2, 3, 3])], {"bins": 3, "min": 0, "max": 3}, ("onnx", "tflite")),
    ],
    "aten::searchsorted": [
        *(
            Sample([sequence, np.array([2, -1, 9, 4, 4.5], np.float32), None], {"right": right}, FILES)
            for sequence, right in itertools.product(
                (Const(number([1, 2, 2, 4])), number([1, 2, 2, 4])), (False, True)
            )
        ),
        Sample([NUMBERS, NUMBERS[:, :, :2] + 2, None], {"right": True}, ("onnx", "tflite"), onnx_since=9),
        Sample([number([[3, 1, 2], [0, 5, 1]]), CUBE[0, :2], ints([1, 2, 0], [0, 2, 1])], {}, FILES),
        Sample([number([1, 2]), number(1.5), None], {}, FILES),
    ],
}
