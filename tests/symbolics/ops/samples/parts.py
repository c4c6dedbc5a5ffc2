"""Elements under a mask, by their numbers in a row, windows and pieces of one axis."""

import itertools  # noqa: F401 (rows have it)

import numpy as np

from .common import Sample, X, rows
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

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
