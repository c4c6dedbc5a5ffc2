"""Maxima of windows with their places."""

import numpy as np

from tests.symbolics.ops.harness import normal

from .common import Sample

ONNX = ("onnx",)
INPUTS = {1: normal(0, 2, 3, 9), 2: normal(1, 2, 3, 6, 7), 3: normal(2, 1, 2, 4, 5, 6)}
PLACES = np.array([[[3, 0, 4], [1, 6, 2]]])

SAMPLES: dict[str, list[Sample]] = {
    **{
        f"aten::max_pool{axes}d_with_indices": [
            Sample([x], {"kernel_size": 3, "stride": 2, "padding": 1}, ("onnx", "tflite")),
            Sample([x], {"kernel_size": 2, "stride": 2, "ceil_mode": True}, ("onnx", "tflite")),
            Sample([x], {"kernel_size": 2, "stride": 1, "dilation": 2}, ("onnx", "tflite")),
        ]
        for axes, x in INPUTS.items()
    },
    **{
        f"aten::adaptive_max_pool{axes}d_with_indices": [
            Sample([x], {"output_size": [4, 3, 5][:axes]}, ("onnx", "tflite")),
            Sample([x], {"output_size": 1}, ("onnx", "tflite")),
        ]
        for axes, x in INPUTS.items()
    },
    "aten::max_unpool1d": [Sample([normal(0, 1, 2, 3), PLACES], {"output_size": [7]}, ("onnx", "tflite"))],
    "aten::max_unpool2d": [
        Sample([normal(0, 1, 2, 3, 1), PLACES[..., None]], {"output_size": [2, 4]}, ("onnx", "tflite"))
    ],
    "aten::max_unpool3d": [
        Sample(
            [normal(0, 1, 2, 1, 3, 1), PLACES[:, :, None, :, None]],
            {"output_size": [2, 2, 2]},
            ("onnx", "tflite"),
        )
    ],
}
