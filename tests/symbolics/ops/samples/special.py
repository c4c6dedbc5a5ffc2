"""Special functions."""

import numpy as np

from .common import Sample, X, rows

WIDE = X * 4
POLES = np.array([0, -1, -2, np.inf, np.nan, 1e-3, 2, 1, -0.5], np.float32)
EDGES = np.array([0, np.inf, -np.inf, np.nan, 5, -5, 30, -30], np.float32)
PARTS = np.array([0, 1, 0.5, 2, -1, np.nan, 1e-20, 1e-3, 0.02, 0.7, 0.999], np.float32)
RUNTIMES = ("onnx", "tflite")
GAMMA = [
    Sample([POLES], targets=RUNTIMES),
    Sample([POLES[np.isfinite(POLES)]]),
    Sample([np.linspace(-9, 9, 60, dtype=np.float32)]),
]
DISTANT = [
    Sample([WIDE]),
    Sample([EDGES], targets=RUNTIMES),
    Sample([X[0].astype(np.float64)], targets=("onnx",)),
]

SAMPLES: dict[str, list[Sample]] = {
    **rows(__file__, "SAMPLES", globals()),
    **{f"aten::{name}": DISTANT for name in ("i0", "special_i0e", "special_i1", "special_i1e")},
}
