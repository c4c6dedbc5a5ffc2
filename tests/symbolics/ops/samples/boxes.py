"""Pooling in boxes."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample, rows

ONNX = ("onnx",)
X = normal(0, 2, 8, 9, 7)
BOXES = np.array(
    [[0, 1, 1, 6, 7], [1, -3, -2, 4.2, 5.1], [0, 3, 3, 3.2, 3.1], [1, 2.5, 4, 9, 13], [0, 0, 0, 6, 8]],
    np.float32,
)
ONE_IMAGE = BOXES[::2]  # of image 0
ALIGNED = {"output_size": [3, 2], "spatial_scale": 0.75, "aligned": True}

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
