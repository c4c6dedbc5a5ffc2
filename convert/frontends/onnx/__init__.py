"""Reads ONNX models."""
