"""Sizes as data."""

from __future__ import annotations

from .common import Sample

SAMPLES: dict[str, list[Sample]] = {
    "tm::sizes": [
        Sample([], {"values": [2, 3, 5]}, ("onnx", "tflite")),
        Sample([], {"values": [7]}, ("onnx", "tflite")),
    ],
}
