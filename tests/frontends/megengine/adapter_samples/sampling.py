"""megengine.functional.vision: sampling, warping, boxes and colours."""

import numpy as np

from .common import Known, call, numbers, rows

IMAGES = numbers(2, 3, 5, 6)
PLACES = numbers(2, 4, 7, 2, seed=4)
ROWS = np.ascontiguousarray(IMAGES.transpose(0, 2, 3, 1))
MANY = np.ascontiguousarray(np.concatenate([ROWS, ROWS[..., :1]], 3))
PERSPECTIVE = np.array(
    [[[1.1, 0.1, -0.7], [0.05, 0.9, 0.4], [0.01, 0.02, 1]], [[0.5, 0, 1], [0, 0.7, -1], [0, 0, 1]]],
    np.float32,
)
AFFINE = np.ascontiguousarray(PERSPECTIVE[:, :2])
BOXES = np.array(
    [[0, 0.5, 0.5, 4, 4], [1, 1.2, 0, 5.9, 3.3], [0, -1, -1, 2, 2], [1, 3, 3, 2, 2], [0, 2, 2, 2.2, 2.3]],
    np.float32,
)
BORDERS = ("replicate", "reflect", "reflect_101", "wrap", "constant")
COLOURED = np.abs(numbers(1, 4, 5, 3)) / 8
BYTES = (np.arange(2 * 6 * 7 * 3) * 89 % 256).astype(np.uint8).reshape(2, 6, 7, 3)


class Constant(Known):
    def __init__(self, array):
        self.array = array


VISION = rows(__file__, "VISION", globals())

LOW = np.random.default_rng(2).integers(0, 6, (30, 2))
RECTANGLES = np.concatenate([LOW, LOW + np.random.default_rng(3).integers(1, 5, (30, 2))], 1)
RECTANGLES = RECTANGLES.astype(np.float32)
SCORES = numbers(30)
NMS = [
    *(call(RECTANGLES, SCORES, each) for each in (0.5, 0.3, 1 / 3, 0.0, 0.6)),
    call(RECTANGLES, np.round(SCORES), 0.5),
    call(RECTANGLES, SCORES, iou_thresh=0.5, max_output=5),
    call(RECTANGLES, SCORES, 0.5, 100),
    call(RECTANGLES[:1], SCORES[:1], 0.5),
]
TAKEN = [
    call(IMAGES > 0, IMAGES),
    call(IMAGES > 100, IMAGES),
    call(PLACES[0] > 1, (PLACES[0] * 8).astype(np.int32)),
]

SAMPLES = {
    "megengine.functional.vision.nms": NMS,
    "megengine.functional.tensor.cond_take": TAKEN,
    **{f"megengine.functional.vision.{name}": calls for name, calls in VISION.items()},
}
