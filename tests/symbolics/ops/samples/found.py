"""Results whose size depends on the data."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample, rows

ONNX, FILES = ("onnx",), ("onnx", "tflite")
CUBE = np.round(normal(1, 2, 3, 4))
HOLES = [
    Sample([CUBE > 0], {}, FILES),
    Sample([CUBE], {}, FILES),
    *(
        Sample([np.abs(CUBE[0]).astype(dtype)], {}, FILES)
        for dtype in ("float64", "float16", "int64", "uint8")
    ),
    *(Sample([CUBE[0].astype(dtype)], {}, FILES) for dtype in ("int32", "int16", "int8")),
    Sample([np.zeros(5, bool)], {}, FILES),
    Sample([np.ones((1, 5), bool)], {}, FILES),
    Sample([np.zeros((0, 5), bool)], {}, FILES),
]


def boxes(seed: int, count: int) -> np.ndarray:
    """Boxes of which many overlap, on a grid, so that some overlap by just a half."""
    random = np.random.default_rng(seed)
    low = random.integers(0, 6, (count, 2))
    return np.concatenate([low, low + random.integers(0, 5, (count, 2))], 1).astype(np.float32)


SCORES = np.round(normal(3, 30), 1)  # with ties
CLASSES = np.random.default_rng(4).integers(0, 3, 30)
BOXES = boxes(2, 30)

ONCE = [
    Sample([CUBE], {}, FILES),
    *(Sample([np.abs(CUBE[0]).astype(dtype)], {}, FILES) for dtype in ("int64", "int32", "uint8")),
    Sample([np.abs(CUBE[0]).astype("float64")], {}, ONNX),
    Sample([CUBE[0].astype("int8")], {}, FILES),
    Sample([CUBE[0] > 0], {}, FILES),
    Sample([np.zeros(5, np.float16)], {}, ONNX),
    Sample([CUBE[0, 0, :1]], {}, FILES),
    Sample([np.array(2.5, np.float32)], {}, FILES),
]

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
