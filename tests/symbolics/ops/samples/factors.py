"""Matrices taken apart: those of four rows are written out, larger ones a loop."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample, rows

LOOPS = ("onnx", "tflite")
SQUARES, LARGE = normal(0, 2, 3, 3), normal(3, 6, 6)
PIVOTS = np.array([[0, 2, 0], [0, 0, 3], [4, 1, 1]], np.float32)
SINGULAR = np.array([[1, 2, 3], [2, 4, 6], [0, 1, 1]], np.float32)
POSITIVE = SQUARES @ np.swapaxes(SQUARES, 1, 2) + np.eye(3, dtype=np.float32)
HOLLOW = np.ones((3, 3), np.float32) - np.eye(3, dtype=np.float32)
ROWS = normal(4, 5, 2)
TRIANGLE = LARGE / 4 + np.eye(6, dtype=np.float32)

SAMPLES = {
    **rows(__file__, "SAMPLES", globals()),
    **{
        name: [Sample([x], {}, LOOPS) for x in (SQUARES, ROWS.T, LARGE)]
        for name in ("aten::geqrf", "tm::geqp3")
    },
}
