"""Bessel's and Airy's functions, the zeta function, incomplete gamma functions, orthogonal polynomials."""

import numpy as np

from tests.symbolics.ops.harness import Const
from tmconvert.symbolics.ops.special.orthogonal_polynomials import TABLE

from .common import Sample, X

WIDE = X[0, :2] * 4
EDGES = np.array([0, -0.0, np.inf, -np.inf, np.nan, 5, -5, 2, 2.09, -2.09, 1e-8, 30, -30, 104], np.float32)
EMPTY = np.zeros((2, 0), np.float32)
UNARY = [
    *(f"bessel_{kind}{order}" for kind in "jy" for order in (0, 1)),
    *(f"{scaled}modified_bessel_k{order}" for scaled in ("", "scaled_") for order in (0, 1)),
    "airy_ai",
]
SHAPES = np.array([0, 0.5, 3, 20, 1500, np.inf, np.nan, -1], np.float32).reshape(-1, 1)
BOUNDS = np.array([0, 0.1, 4, 25, 1490, np.inf, np.nan, -1], np.float32)
EXPONENTS = np.array([0.5, 1, 1.5, 2, 3, 30, np.nan], np.float32).reshape(-1, 1)
STARTS = np.array([1, 0.25, 0, -1, -2.5, 100, np.nan], np.float32)
DEGREES = np.array([0, 1, 2, 3, 5, 9, 14, -1, -0.5, np.nan], np.float32)
PLACES = np.array([0, 1, -1, 0.3, -0.7, 2.5, 0.95], np.float32).reshape(-1, 1)
ONNX, RUNTIMES = ("onnx",), ("onnx", "tflite")


def _of_two(first: np.ndarray, second: np.ndarray) -> list[Sample]:
    wide = np.float64
    return [
        Sample([first, second]),
        Sample([first[:3].astype(wide), second[:4].astype(wide)], targets=ONNX),
        Sample([np.abs(EMPTY), EMPTY], targets=RUNTIMES),
    ]


SAMPLES: dict[str, list[Sample]] = {
    **{
        f"aten::special_{name}": [
            Sample([WIDE]),
            # LiteRT's own kernels make no infinities, of which these waves make NaN
            Sample([EDGES], targets=ONNX if name[:8] in ("bessel_j", "bessel_y") else RUNTIMES),
            Sample([X[0, 0].astype(np.float64)], targets=ONNX),
        ]
        for name in UNARY
    },
    "aten::igamma": _of_two(SHAPES, BOUNDS),
    "aten::igammac": _of_two(SHAPES, BOUNDS),
    "aten::special_zeta": _of_two(EXPONENTS, STARTS),
    **{
        f"aten::special_{name}": [
            *(
                Sample([*args], targets=RUNTIMES)  # a loop
                for args in ([PLACES, DEGREES], [PLACES[3], DEGREES[3:4].reshape(())])
            ),
            Sample([PLACES.astype(np.float64), DEGREES[:6].astype(np.float64)], targets=ONNX),
            Sample([PLACES, Const(DEGREES[:5])]),  # in as many steps as there are degrees
            Sample([EMPTY, DEGREES[:1]], targets=RUNTIMES),
        ]
        for name in TABLE
    },
}
