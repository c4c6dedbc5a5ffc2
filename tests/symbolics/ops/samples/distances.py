"""Distances, and products that are added to something."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample

RUNTIMES = ("onnx", "tflite")
CUBE, OTHER = normal(0, 2, 4, 5), normal(1, 2, 4, 5)
ROWS = normal(2, 4, 3)
FACTORS = {"beta": 3, "alpha": 2}
IGNORED = Const(np.full(1, np.nan, np.float32))

SAMPLES: dict[str, list[Sample]] = {
    "aten::cosine_similarity": [
        Sample([CUBE, OTHER], {}, RUNTIMES),
        Sample([CUBE, OTHER[0, :1]], {"dim": -1}, RUNTIMES),
        Sample([CUBE, OTHER[:, :, :1]], {"dim": 2, "eps": 2}, RUNTIMES),
        Sample([CUBE, OTHER[0]], {"dim": 0}, RUNTIMES),
    ],
    "aten::pairwise_distance": [
        Sample([CUBE, OTHER], {}, RUNTIMES),
        Sample([CUBE, OTHER[0, 0]], {"p": 1, "keepdim": True}, RUNTIMES),
        Sample([ROWS[0], ROWS[1]], {"p": np.inf, "eps": 0.5}, RUNTIMES),
    ],
    "aten::pdist": [
        Sample([ROWS], {}, RUNTIMES),
        Sample([ROWS], {"p": 3}, RUNTIMES),
        Sample([ROWS], {"p": 0}, RUNTIMES),
    ],
    "aten::renorm": [
        Sample([CUBE], {"p": 2, "dim": 1, "maxnorm": 2}, RUNTIMES),
        Sample([CUBE], {"p": 1, "dim": -1, "maxnorm": 6}, RUNTIMES),
    ],
    "aten::addmv": [
        Sample([normal(3, 4), ROWS, normal(4, 3)], FACTORS, RUNTIMES),
        Sample([IGNORED, ROWS, normal(4, 3)], {"beta": 0}, RUNTIMES),
    ],
    "aten::addr": [Sample([ROWS, normal(3, 4), normal(4, 3)], FACTORS, RUNTIMES)],
    "aten::addbmm": [
        Sample([normal(3, 4, 4), CUBE, np.swapaxes(OTHER, 1, 2).copy()], FACTORS, RUNTIMES),
        Sample([normal(3, 4), CUBE, np.swapaxes(OTHER, 1, 2).copy()], {}, RUNTIMES),
    ],
}
