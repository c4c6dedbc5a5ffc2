"""Elements chosen, laid out again and put into place."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, X, rows

CUBE = normal(1, 3, 4, 5)
FILES = ("onnx", "tflite")


def ints(*values: object) -> np.ndarray:
    return np.array(values)


PUT = [
    Sample([CUBE, ints(2, 0, -1), normal(2, 3, 3, 5)], {"dim": 1}, FILES),
    Sample([CUBE, Const(ints(1, -3)), normal(2, 2, 4, 5)], {"dim": 0}, FILES),
    Sample([X, ints(4).astype(np.int32), normal(2, 2, 3, 5, 1)], {"dim": -1}, FILES),
]
PLACES = [
    Sample([CUBE, ints([[0], [2]], [[-1], [1]])], {"dim": 0}, FILES),
    Sample([CUBE, Const(ints([[0, 2, 3, 1, -2]], [[1, 1, 2, 3, 0]]))], {"dim": 1}, FILES),
    Sample([CUBE, ints([[0, 2], [4, -5]]).astype(np.int32)], {"dim": -1}, FILES),
]
SCATTER = [
    Sample(
        [*each.args, normal(3, *getattr(each.args[1], "array", each.args[1]).shape)], each.attributes, FILES
    )
    for each in PLACES
]

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
