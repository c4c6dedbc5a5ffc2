"""Elementwise ops that formulas say."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample, rows

ONNX, RUNTIMES = ("onnx",), ("onnx", "tflite")
Y = normal(1, 2, 3, 5, 7)
EDGES = np.array([0, -0.0, 1, 2, np.inf, -np.inf, np.nan, 1 + 1e-6, -1], np.float32)
WHOLE = np.array([[-12, 18, 0, 7], [0, 89, 100, -128]], np.int32)
OTHERS = np.array([8, 144, 0, -14], np.int32)
PAIRS = [
    Sample([WHOLE, OTHERS], {}, RUNTIMES),
    Sample([WHOLE.astype(np.int64), OTHERS[:1].astype(np.int64)], {}, RUNTIMES),
    Sample([np.abs(WHOLE).astype(np.uint8), OTHERS[1:2].astype(np.uint8)], {}, RUNTIMES),
]

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
