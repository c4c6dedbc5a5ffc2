"""Matrices taken apart: those of four rows are written out, larger ones a loop."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample

LOOPS = ("onnx", "tflite")
SQUARES, LARGE = normal(0, 2, 3, 3), normal(3, 6, 6)
PIVOTS = np.array([[0, 2, 0], [0, 0, 3], [4, 1, 1]], np.float32)
SINGULAR = np.array([[1, 2, 3], [2, 4, 6], [0, 1, 1]], np.float32)
POSITIVE = SQUARES @ np.swapaxes(SQUARES, 1, 2) + np.eye(3, dtype=np.float32)
HOLLOW = np.ones((3, 3), np.float32) - np.eye(3, dtype=np.float32)
ROWS = normal(4, 5, 2)
TRIANGLE = LARGE / 4 + np.eye(6, dtype=np.float32)

SAMPLES = {
    "aten::linalg_det": [Sample([x], {}, LOOPS) for x in (SQUARES, LARGE)],
    "aten::linalg_slogdet": [Sample([x], {}, LOOPS) for x in (SQUARES, LARGE)],
    "aten::linalg_inv": [Sample([x], {}, LOOPS) for x in (SQUARES, PIVOTS, LARGE)],
    "aten::linalg_lu_factor_ex": [Sample([x], {}, LOOPS) for x in (SQUARES, PIVOTS, SINGULAR, ROWS, LARGE)],
    "aten::lu_unpack": [
        Sample([SQUARES, np.array([[3, 2, 3], [1, 3, 3]], np.int32)], {}, LOOPS),
        Sample([LARGE[:5], np.array([2, 4, 3, 5, 5], np.int32)], {}, LOOPS),
        Sample([LARGE[:, :5], np.array([2, 6, 3, 5, 5], np.int32)], {}, LOOPS),
    ],
    "aten::linalg_solve_triangular": [
        Sample([SQUARES, normal(1, 3, 2)], {"upper": True}, LOOPS),
        Sample([SQUARES, normal(1, 2, 2, 3)], {"upper": False, "left": False}, LOOPS),
        Sample([TRIANGLE, normal(1, 6, 2)], {"upper": True, "unitriangular": True}, LOOPS),
    ],
    "aten::linalg_cholesky_ex": [
        Sample([POSITIVE], {}, LOOPS),
        Sample([POSITIVE[0]], {"upper": True}, LOOPS),
        Sample([LARGE @ LARGE.T + np.eye(6, dtype=np.float32)], {}, LOOPS),
    ],
    **{
        name: [Sample([x], {}, LOOPS) for x in (SQUARES, ROWS.T, LARGE)]
        for name in ("aten::geqrf", "tm::geqp3")
    },
    "aten::ormqr": [
        Sample([ROWS, normal(1, 2), normal(2, 5, 3)], {"transpose": True}, LOOPS),
        Sample([SQUARES, normal(1, 2, 3), normal(2, 2, 4, 3)], {"left": False}, LOOPS),
        Sample([LARGE, normal(1, 6) / 6, normal(2, 6, 2)], {}, LOOPS),
    ],
    "aten::linalg_matrix_exp": [Sample([x], {}, LOOPS) for x in (SQUARES, LARGE, TRIANGLE / 9)],
    "aten::linalg_ldl_factor_ex": [Sample([x], {}, LOOPS) for x in (SQUARES, HOLLOW, LARGE, PIVOTS)],
    "aten::linalg_ldl_solve": [
        Sample([SQUARES, np.array([[1, 3, 3], [-3, -3, 3]], np.int32), normal(1, 3, 2)], {}, LOOPS),
        Sample([TRIANGLE, np.array([1, -5, -5, 4, -6, -6], np.int32), normal(1, 2, 6, 2)], {}, LOOPS),
    ],
}
