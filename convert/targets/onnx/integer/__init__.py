"""Integers in ONNX: Q/DQ pairs, integer types, integer weights."""
