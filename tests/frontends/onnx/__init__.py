"""Tests of reading ONNX models."""
