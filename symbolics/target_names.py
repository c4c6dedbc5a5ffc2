"""The targets that have symbolics, and the names of their versions in messages."""

from __future__ import annotations

TITLES = {"onnx": "ONNX", "tflite": "TFLite", "caffe": "Caffe"}
TARGETS = tuple(TITLES)
# in messages: the version, and the option that chooses it
VERSION_WORDS = {"onnx": ("opset {}", "--opset {}"), "tflite": ("runtime 2.{}", "--runtime 2.{}")}
