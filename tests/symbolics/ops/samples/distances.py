"""Distances, and products that are added to something."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, rows

RUNTIMES = ("onnx", "tflite")
CUBE, OTHER = normal(0, 2, 4, 5), normal(1, 2, 4, 5)
ROWS = normal(2, 4, 3)
FACTORS = {"beta": 3, "alpha": 2}
IGNORED = Const(np.full(1, np.nan, np.float32))

SAMPLES: dict[str, list[Sample]] = rows(__file__, "SAMPLES", globals())
