"""Elements for the same places, added up or reduced otherwise."""

from typing import Any

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, rows
from .indexing import CUBE, PUT, SCATTER, ints

WHOLE = np.arange(-12, 12).reshape(4, 6)
TWICE = ints([0, 3, 0], [3, 3, 1])  # fewer places than WHOLE has, along both axes


def whole(dtype: Any) -> list[np.ndarray]:
    """x, index and src of an integer type; only the index may be smaller."""
    return [WHOLE.astype(dtype), TWICE, ints([5, -7, 3], [2, -1, 11]).astype(dtype)]


FOLDED = [
    *SCATTER,
    Sample([CUBE[0], ints([0, 2, 0, 0], [1, 2, 2, 0]), normal(4, 2, 4)], {"dim": 0}),
    Sample([CUBE[0, 0], Const(ints(1, 1, 4, 1).astype(np.int32)), normal(4, 4)], {"dim": -1}),
    Sample(whole(np.int32), {"dim": 0}),
    Sample(whole(np.int8), {"dim": 0}, ("onnx", "tflite")),  # which wraps around
    *(Sample(whole(dtype), {"dim": 0}, ("onnx", "caffe")) for dtype in (np.int64, np.float16, np.float64)),
    Sample([WHOLE > 5, TWICE, ints([True, False, True], [False, True, False])], {"dim": 0}),
    Sample([CUBE, np.zeros((0, 2, 5), int), normal(4, 0, 2, 5)], {"dim": 1}, ("onnx", "tflite")),
]
ADDED = [
    *PUT,
    Sample([CUBE, ints(1, 0, 1), normal(2, 3, 4, 5)], {"dim": 0}),
    *(Sample([WHOLE.astype(t), ints(1, 1), WHOLE[:, :2].astype(t)], {"dim": -1}) for t in ("int32", "int64")),
]
LONG = Sample(ADDED[-1].args, {"dim": -1}, ("onnx", "caffe"))
FLAGS = Sample([WHOLE > 5, ints(1, 1), WHOLE[:, :2] > 0], {"dim": -1})


def reduced(samples: list[Sample], *reductions: str) -> list[Sample]:
    """Each of the samples with each reduction, by turns with and without what was there."""
    return [
        Sample(
            each.args, {**each.attributes, "reduce": reduce, "include_self": bool((i + j) % 2)}, each.targets
        )
        for i, each in enumerate(samples)
        for j, reduce in enumerate(reductions)
    ]


SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
