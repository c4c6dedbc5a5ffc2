"""Volumes sampled at places, and the places of affine maps."""

from itertools import product

from tests.symbolics.ops.harness import normal

from .common import Sample

ONNX = ("onnx",)
VOLUME, PLACES = normal(0, 2, 3, 4, 5, 6), normal(1, 2, 2, 3, 4, 3)

SAMPLES: dict[str, list[Sample]] = {
    "aten::grid_sampler_3d": [
        Sample(
            [VOLUME, PLACES],
            {"interpolation_mode": mode, "padding_mode": padding, "align_corners": corners},
            ("onnx", "tflite"),
        )
        for mode, padding, corners in [*product((0, 1), (0, 1, 2), (False,)), (0, 2, True)]
    ],
    "aten::affine_grid_generator": [
        Sample([normal(0, 2, 2, 3)], {"size": [2, 3, 4, 5], "align_corners": False}, ("onnx", "tflite")),
        Sample([normal(0, 1, 2, 3)], {"size": [1, 3, 1, 5], "align_corners": True}, ("onnx", "tflite")),
        Sample([normal(0, 2, 3, 4)], {"size": [2, 1, 3, 4, 5], "align_corners": True}, ("onnx", "tflite")),
    ],
}
