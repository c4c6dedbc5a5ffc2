"""Elementwise ops that formulas say."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample, X

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

SAMPLES: dict[str, list[Sample]] = {
    "aten::sinc": [Sample([X], {}, RUNTIMES), Sample([EDGES[:4]], {}, RUNTIMES)],
    "aten::special_entr": [Sample([X], {}, RUNTIMES), Sample([EDGES], {}, ONNX)],
    "aten::special_xlog1py": [
        Sample([X, np.abs(Y)], {}, RUNTIMES),
        Sample([EDGES[:, None], EDGES], {}, ONNX),
    ],
    "aten::ldexp": [Sample([X, Y[0].round()], {}, RUNTIMES)],
    "aten::gcd": PAIRS,
    "aten::lcm": PAIRS[:2],
    "aten::isclose": [
        Sample([EDGES[:, None], EDGES], {}, RUNTIMES),
        Sample([EDGES[:, None], EDGES], {"equal_nan": True, "rtol": 0.5, "atol": 1}, RUNTIMES),
        Sample([X, Y], {"atol": 0.5}, RUNTIMES),
        Sample([WHOLE, OTHERS], {"rtol": 0.25, "atol": 3}, RUNTIMES),
    ],
}
