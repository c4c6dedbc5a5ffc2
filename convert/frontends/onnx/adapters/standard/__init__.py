"""Adapters of the standard's operators (ai.onnx)."""
