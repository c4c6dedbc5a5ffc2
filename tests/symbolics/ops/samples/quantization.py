"""Annotations, and integers of tensors."""

from tests.symbolics.ops.harness import normal

from .common import Sample, X

EIGHT = {"quant_min": -128, "quant_max": 127}
SAMPLES: dict[str, list[Sample]] = {
    "tm::requantize": [Sample([X]), Sample([normal(1, 4)])],
    "tm::in_steps": [Sample([X, X])],
    "tm::quantize": [
        Sample([X], {"scale": [0.02], "zero_point": [3], **EIGHT}, ("onnx", "tflite")),
        Sample(
            [normal(1, 2, 3, 5)],
            {"scale": [0.02, 0.03, 0.011], "zero_point": [0, 0, 0], **EIGHT, "axis": 1, "dtype": "int32"},
            ("onnx", "tflite"),
        ),
        Sample(
            [normal(2, 4)],
            {"scale": [0.05], "zero_point": [100], "quant_min": 0, "quant_max": 255, "dtype": "uint8"},
            ("onnx", "tflite"),
        ),
    ],
}
