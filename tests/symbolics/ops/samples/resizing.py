"""Images resized in other ways, sampled and pooled by boxes."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample, X, rows

BORDERS = ("replicate", "reflect", "reflect_101", "wrap", "constant")

FILES = ("onnx", "tflite")
ROW = normal(0, 2, 3, 5)
VOLUME = normal(0, 1, 2, 3, 4, 5)
MIXED = [
    Sample([X], {"output_size": [10, 4]}, FILES),
    Sample([X], {"output_size": [3, 14], "align_corners": True}, FILES),
    Sample([X], {"output_size": [5, 9]}, FILES),
    Sample([X], {"output_size": [8, 5], "scales": [1.7, 0.8]}, FILES),
]

PLACES = normal(5, 2, 4, 3, 2) * 5
GRID = normal(6, 2, 4, 3, 2) * np.float32(0.75)

BOXES = np.array([[0, 0.5, 0.5, 4, 4], [1, 1.2, 0, 5.9, 3.3], [0, -1, -1, 2, 2], [1, 3, 3, 2, 2]], np.float32)

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
