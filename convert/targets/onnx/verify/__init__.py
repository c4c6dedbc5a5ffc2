"""Verification of ONNX files with quantized values or compressed weights."""
