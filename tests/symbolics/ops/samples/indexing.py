"""Elements chosen, laid out again and put into place."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, X

CUBE = normal(1, 3, 4, 5)
FILES = ("onnx", "tflite")


def ints(*values: object) -> np.ndarray:
    return np.array(values)


PUT = [
    Sample([CUBE, ints(2, 0, -1), normal(2, 3, 3, 5)], {"dim": 1}, FILES),
    Sample([CUBE, Const(ints(1, -3)), normal(2, 2, 4, 5)], {"dim": 0}, FILES),
    Sample([X, ints(4).astype(np.int32), normal(2, 2, 3, 5, 1)], {"dim": -1}, FILES),
]
PLACES = [
    Sample([CUBE, ints([[0], [2]], [[-1], [1]])], {"dim": 0}, FILES),
    Sample([CUBE, Const(ints([[0, 2, 3, 1, -2]], [[1, 1, 2, 3, 0]]))], {"dim": 1}, FILES),
    Sample([CUBE, ints([[0, 2], [4, -5]]).astype(np.int32)], {"dim": -1}, FILES),
]
SCATTER = [
    Sample(
        [*each.args, normal(3, *getattr(each.args[1], "array", each.args[1]).shape)], each.attributes, FILES
    )
    for each in PLACES
]

SAMPLES: dict[str, list[Sample]] = {
    "aten::expand": [
        Sample([normal(0, 1, 3, 1)], {"size": [2, 3, 4]}, FILES),
        Sample([normal(0, 3, 1)], {"size": [2, -1, 4]}, FILES),
        Sample([X], {"size": [2, 3, 5, 7]}, FILES),
        Sample([normal(0)], {"size": [2, 2]}, FILES),
    ],
    "aten::repeat": [
        Sample([CUBE], {"repeats": [1, 2, 3]}, FILES),
        Sample([CUBE], {"repeats": [2, 2, 1, 1]}, FILES),
    ],
    "aten::flip": [
        Sample([X], {"dims": [1]}, FILES),
        Sample([CUBE], {"dims": [2, 0]}, FILES),
        Sample([CUBE], {"dims": []}, FILES),
    ],
    "aten::roll": [
        Sample([X], {"shifts": [2], "dims": [1]}),
        Sample([CUBE], {"shifts": [1, -2, 9], "dims": [0, -1, 1]}, FILES),
        Sample([CUBE], {"shifts": [7]}, FILES),
        Sample([CUBE], {"shifts": [5], "dims": [2]}, FILES),
    ],
    "aten::rot90": [
        Sample([CUBE], {}, FILES),
        Sample([CUBE], {"k": 2, "dims": [1, 2]}, FILES),
        Sample([CUBE], {"k": -1, "dims": [2, 0]}, FILES),
        Sample([CUBE], {"k": 4}, FILES),
    ],
    "aten::repeat_interleave": [
        Sample([CUBE], {"repeats": 2, "dim": 1}, FILES),
        Sample([CUBE], {"repeats": 3, "dim": -1}, FILES),
    ],
    "aten::slice_scatter": [
        Sample([X, normal(1, 2, 2, 5, 7)], {"dim": 1, "start": 1, "end": 3}),
        Sample([CUBE, normal(1, 3, 4, 2)], {"dim": -1, "start": 1, "end": 5, "step": 2}, FILES),
        Sample([CUBE, normal(1, 3, 2, 5)], {"dim": 1, "start": 0, "end": 2}, FILES),
        Sample([CUBE, normal(1, 3, 4, 5)], {"dim": 1, "start": 0, "end": 4}, FILES),
    ],
    "aten::select_scatter": [
        Sample([X, normal(1, 2, 5, 7)], {"dim": 1, "index": 2}),
        Sample([CUBE, normal(1, 3, 4)], {"dim": -1, "index": 0}, FILES),
    ],
    "aten::index_select": [
        Sample([X, Const(ints(2, 0, -1, 2))], {"dim": 1}, FILES),
        Sample([CUBE, ints(2, 0, -1)], {"dim": 0}, FILES),
        Sample([CUBE, ints(2, 0).astype(np.int32)], {"dim": -1}, FILES),
    ],
    "aten::index_copy": PUT,
    "aten::index": [
        Sample([CUBE, [Const(ints(2, 0))]], {}, FILES),
        Sample([CUBE, [None, ints([1, -1], [0, 2])]], {}, FILES),
        Sample([CUBE, [None, ints(1, -1), ints([2], [0])]], {}, FILES),
        Sample([X, [ints(1, 0), None, Const(ints(2, -5)), None]], {}, FILES),
        Sample([X, [Const(ints(1, 0)), Const(ints(2, 0))]], {}, FILES),
        Sample([CUBE, [ints(1), None, Const(np.array(-1))]], {}, FILES),
        Sample([X, [None, ints(1, -1), ints([4], [0]).astype(np.int32)]], {}, FILES),
        Sample([X, [None, np.array(1), None, ints(-7)]], {}, FILES),
        Sample([X, [None, Const(ints(1, -1)), Const(ints([4], [0])), ints(6, 2)]], {}, FILES),
    ],
    "aten::index_put": [
        Sample([CUBE, [Const(ints(2, 0, 2))], normal(2, 3, 4, 5)], {}, FILES),
        Sample([CUBE, [None, ints([1, -1], [0, 2])], normal(2, 5)], {}, FILES),
        Sample([CUBE, [None, ints(1, -1), ints([2], [0])], normal(2, 3, 1, 1)], {}, FILES),
        Sample([X, [ints(1, 0), None, Const(ints(2, -5)), None], normal(2, 2, 3, 7)], {}, FILES),
        Sample([X, [Const(ints(1, 0)), Const(ints(2, 0))], normal(3, 2, 5, 7)], {}, FILES),
        Sample([CUBE, [ints(1, 1, -2), None, ints(2, 2, 0)], normal(3, 4)], {"accumulate": True}, FILES),
        Sample([CUBE > 0, [ints(1, 1, 0)], CUBE[0] > 1], {"accumulate": True}, FILES),
        Sample([CUBE > 0, [CUBE < -1], np.array(True)], {"accumulate": True}, FILES),
        Sample([CUBE, [CUBE > 0], np.array(2.5, np.float32)], {}, FILES),
        Sample([CUBE, [None, CUBE[0] > 0], normal(3, 3, 1)], {}, FILES),
        Sample([CUBE, [CUBE[:, :, 0] > 0], normal(3, 5)], {"accumulate": True}, FILES),
        Sample([CUBE, [None, Const(CUBE[0, :, 0] > 0)], normal(3, 3, 1, 5)], {}, FILES),
    ],
    "aten::diagonal": [
        Sample([CUBE[0]], {}, FILES),
        Sample([CUBE], {"offset": 1, "dim1": 2, "dim2": 0}, FILES),
        Sample([CUBE], {"offset": -2, "dim1": -2, "dim2": -1}, FILES),
    ],
    "aten::diag_embed": [
        Sample([CUBE[0, 0]], {}, FILES),
        Sample([CUBE], {"offset": 2, "dim1": 0, "dim2": -2}, FILES),
        Sample([CUBE[0]], {"offset": -1}, FILES),
    ],
    "aten::arange": [
        Sample([], {"start": 0, "end": 5000}, ("onnx", "tflite")),  # fewer are folded
        Sample([], {"start": 7, "end": -15000, "step": -3}, ("onnx", "tflite")),
    ],
    "aten::one_hot": [
        Sample([ints([2, 0, 1], [3, 3, 0])], {"num_classes": 4}, FILES),
        Sample([ints([2, 0, 1], [3, 3, 0]).astype(np.int32)], {"num_classes": 5}, FILES),
    ],
    "tm::wrap_index": [
        Sample([ints([2, -5, -1], [0, 4, -3])], {"extent": 5}, FILES),
        Sample([ints(2, -5, -1).astype(np.int32)], {"extent": 5}, FILES),
    ],
    "aten::gather": PLACES,
    "aten::scatter": SCATTER,
}
