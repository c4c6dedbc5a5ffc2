"""Results whose size depends on the data."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample

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

SAMPLES: dict[str, list[Sample]] = {
    "aten::nonzero": HOLES,
    "aten::argwhere": HOLES[:2],
    "aten::masked_select": [
        Sample([CUBE, CUBE > 0], {}, FILES),
        Sample([CUBE, CUBE[:1, :, :1] > 0], {}, FILES),
        Sample([CUBE[0, 0], CUBE > 0], {}, FILES),
        Sample([CUBE, np.array(True)], {}, FILES),
        Sample([CUBE, np.zeros(4, bool)], {}, FILES),
        Sample([CUBE.astype(np.int64), Const(CUBE > 0)], {}, FILES),
        Sample([CUBE > 0, CUBE < 1], {}, FILES),
    ],
    "aten::_unique2": ONCE,
    "aten::unique_dim": [
        *(Sample([np.round(CUBE / 2)], {"dim": each}, FILES) for each in (0, 1, -1)),
        *(
            Sample([np.round(CUBE / 3)[0].astype(each)], {"dim": 1}, FILES)
            for each in ("int64", "int32", "int8")
        ),
        Sample([CUBE[0, :1] > 0], {"dim": 0}, FILES),
        Sample([CUBE[0] > 0], {"dim": 1}, FILES),
        Sample([CUBE[0, 0]], {"dim": 0}, FILES),
    ],
    "aten::unique_consecutive": [Sample(each.args, {}, each.targets) for each in ONCE],
    "tm::repeat_indices": [
        Sample([np.array([2, 0, 3, 1])], {}, FILES),
        Sample([np.array([0, 0], np.int32)], {}, FILES),
        Sample([np.array([4])], {}, FILES),
    ],
    "tm::count_to": [Sample([np.array(each)], {}, FILES) for each in (5, 0, np.int32(3))],
    "torchvision::nms": [
        *(Sample([BOXES, SCORES], {"iou_threshold": each}, FILES) for each in (0.5, 0.3, 0.0, 1.0, 1 / 3)),
        Sample([BOXES[:1], SCORES[:1]], {"iou_threshold": 0.5}, FILES),
        Sample([BOXES[:0], SCORES[:0]], {"iou_threshold": 0.5}, FILES),
    ],
    "tm::nms_of_classes": [
        Sample(
            [np.stack([BOXES, BOXES[::-1]]), np.stack([[SCORES, -SCORES]] * 2)],
            {"most": most, "iou_threshold": 0.3, "score_threshold": limit, "is_centre": centre},
            FILES,
        )
        for most, limit, centre in ((2, 0.1, False), (9, None, True))
    ],
    "torchvision::batched_nms": [
        Sample([BOXES, SCORES, CLASSES], {"iou_threshold": 0.5}, FILES),
        Sample([BOXES, SCORES, CLASSES.astype(np.int32)], {"iou_threshold": 0.2}, FILES),
        Sample([BOXES[:0], SCORES[:0], CLASSES[:0]], {"iou_threshold": 0.5}, FILES),
    ],
}
