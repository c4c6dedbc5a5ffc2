"""The ops of a convolutional network."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import CHANNELS, POSITIVE, Sample, X

BINARY = [Sample([X, POSITIVE[::-1].copy()]), Sample([X, Const(POSITIVE[:1, :, :1, :1])])]
SIGNED = [Sample([np.array([-5, 0, 7], dtype)]) for dtype in ("int8", "int32", "int64")]
UNARY = [Sample([X]), Sample([normal(1, 2, 5)])]
UNARY_POSITIVE = [Sample([POSITIVE]), Sample([POSITIVE[0, 0]])]
REDUCTION = [
    Sample([X], {"dim": [2, 3], "keepdim": True}),
    Sample([X[0]], {"dim": [1]}, targets=("onnx", "tflite")),
]
ARG_REDUCTION = [Sample([X], {"dim": 1}), Sample([X], {"dim": 3, "keepdim": True})]

SAMPLES: dict[str, list[Sample]] = {
    "aten::conv2d": [
        Sample([X, Const(normal(1, 4, 3, 3, 2)), Const(normal(2, 4))], {"stride": [2, 1], "padding": [1, 0]}),
        Sample([X, Const(normal(1, 6, 1, 2, 3)), None], {"dilation": [1, 2], "groups": 3}),
    ],
    "aten::max_pool2d": [
        Sample([X], {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0]}),
        Sample(
            [X],
            {"kernel_size": [2, 3], "stride": [1, 2], "dilation": [2, 1]},
            ("onnx", "tflite"),
            onnx_since=10,
        ),
    ],
    "aten::avg_pool2d": [
        Sample([X], {"kernel_size": [3, 2], "stride": [2, 1]}),
        Sample(
            [X],
            {"kernel_size": [3, 3], "stride": [3, 2], "padding": [1, 1], "ceil_mode": True},
            ("onnx", "tflite"),
        ),
        Sample([X], {"kernel_size": [2, 3], "stride": [2, 2], "ceil_mode": True}, ("onnx", "tflite")),
        Sample(
            [X],
            {"kernel_size": [3, 4], "stride": [2, 3], "padding": [1, 2], "count_include_pad": False},
            ("onnx", "tflite"),
        ),
        Sample([X], {"kernel_size": [5, 7], "stride": [1, 1]}),
    ],
    "aten::upsample_nearest2d": [
        Sample([X], {"output_size": [10, 21]}),
        Sample([X], {"output_size": [4, 9]}),
    ],
    "aten::upsample_bilinear2d": [
        Sample([X], {"output_size": [10, 21]}),
        Sample([X], {"output_size": [4, 9], "align_corners": True}),
    ],
    "aten::batch_norm": [Sample([X, *CHANNELS]), Sample([X[:, :, 0, 0], None, None, *CHANNELS[2:]])],
    "aten::linear": [
        Sample([normal(0, 2, 5), Const(normal(1, 7, 5)), Const(normal(2, 7))]),
        Sample([normal(0, 2, 3, 5), Const(normal(1, 7, 5)), None]),
    ],
    **{f"aten::{name}": BINARY for name in ("add", "sub", "mul", "div", "maximum", "minimum")},
    **{f"aten::{name}": UNARY for name in ("exp", "square", "floor", "ceil")},
    **{f"aten::{name}": [*UNARY, *SIGNED] for name in ("abs", "neg")},
    **{f"aten::{name}": UNARY for name in ("sigmoid", "tanh", "relu", "relu6")},
    **{f"aten::{name}": UNARY_POSITIVE for name in ("log", "sqrt", "reciprocal", "rsqrt")},
    "aten::clamp": [
        Sample([X], {"min": -0.5, "max": 1}),
        Sample([X], {"max": 0.5}),
        Sample([X], {"min": -1}),
    ],
    "aten::softmax": [Sample([X], {"dim": 1}), Sample([X], {"dim": -1})],
    **{f"aten::{name}": REDUCTION for name in ("mean", "sum", "amax", "amin")},
    **{f"aten::{name}": ARG_REDUCTION for name in ("argmax", "argmin")},
    "aten::reshape": [Sample([X], {"shape": [2, 105]}), Sample([X], {"shape": [3, 2, 35]})],
    "aten::permute": [Sample([X], {"dims": [0, 2, 3, 1]}), Sample([X[0]], {"dims": [2, 0, 1]})],
    "aten::cat": [
        Sample([[X, normal(1, 2, 4, 5, 7)]], {"dim": 1}),
        Sample([[X, X[:, :, :2], normal(1, 2, 3, 1, 7)]], {"dim": 2}),
    ],
    "aten::slice": [
        Sample([X], {"dim": 2, "start": 1, "end": 4}),
        Sample([X], {"dim": 3, "start": 1, "end": 7, "step": 3}, targets=("onnx", "tflite")),
    ],
    "aten::select": [Sample([X], {"dim": 1, "index": 2}), Sample([X], {"dim": 3, "index": 0})],
    "aten::pad": [
        Sample([X], {"pad": [0, 0, 0, 1, 1, 2, 0, 3], "value": 0.5}),
        Sample([X], {"pad": [0, 0, 0, 0, 1, 2, 0, 3], "mode": "reflect"}, targets=("onnx", "tflite")),
        Sample(
            [np.arange(6).reshape(2, 3)], {"pad": [1, 0, 2, 1], "mode": "reflect"}, targets=("onnx", "tflite")
        ),
        Sample([X > 0], {"pad": [0, 0, 0, 1, 1, 2, -1, 3], "value": 1}, targets=("onnx", "tflite")),
        Sample(
            [np.arange(6).reshape(2, 3)],
            {"pad": [1, 0, -1, 2], "value": -7},
            targets=("onnx", "tflite"),
            onnx_since=11,
        ),
    ],
    "aten::to": [Sample([X], {"dtype": "int32"}), Sample([np.arange(6).reshape(2, 3)], {"dtype": "float32"})],
    "tm::view": [
        Sample([X], {"split": [2, 3, 5, 7], "index": [-1, 1, -1, -1], "order": [0, 2, 1], "shape": [14, 5]}),
        Sample(
            [normal(0, 2, 6, 5, 7)],
            {"split": [2, 2, 3, 5, 7], "index": [-1] * 5, "order": [0, 2, 1, 3, 4], "shape": [2, 6, 5, 7]},
        ),
    ],
    "tm::relayout": [Sample([X], {"to": "nhwc"}), Sample([X], {"to": "source"})],
}
