"""Quantiles, medians of what is a number, and the most frequent elements."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample

ONNX = ("onnx",)
CUBE = normal(1, 2, 4, 5)
HOLES = np.where(CUBE > 0.75, np.float32(np.nan), CUBE)
HOLES[0, :, 0] = np.nan
COUNTS = np.array([[3, 1, 3, 2, 1, 0], [2, 2, 5, 0, 5, 0]])
PARTS = Const(np.array([0, 0.25, 0.375, 1], np.float32))
HALF = np.array(0.5, np.float32)

QUANTILES = [
    *(
        Sample([x, PARTS], {"dim": 1, "interpolation": each}, ("onnx", "tflite"))
        for each in ("linear", "lower", "higher", "midpoint", "nearest")
        for x in (CUBE, HOLES)
    ),
    Sample([HOLES, HALF], {"dim": -1, "keepdim": True}, ("onnx", "tflite")),
    Sample([CUBE[0, 0, :1], PARTS.array], {"dim": 0, "keepdim": True}, ("onnx", "tflite")),
]
FLOATS = [Sample([COUNTS.astype(np.float32)], {"dim": 1}, ("onnx", "tflite"))]
INTEGERS = [
    Sample([COUNTS], {"dim": 0, "keepdim": True}, ("onnx", "tflite")),
    Sample([COUNTS.astype(np.int32)], {}, ("onnx", "tflite")),
]

SAMPLES: dict[str, list[Sample]] = {
    "aten::quantile": QUANTILES,
    "aten::nanquantile": QUANTILES,
    "aten::mode": [*FLOATS, *INTEGERS],
    "aten::nanmedian": [
        *FLOATS,
        *(Sample(each.args, each.attributes, ("onnx", "tflite"), 11) for each in INTEGERS),
        Sample([HOLES], {"dim": -1}, ("onnx", "tflite")),
        Sample([HOLES], {"dim": 1, "keepdim": True}, ("onnx", "tflite")),
    ],
}
