"""Passes for ONNX alone: rewritings of the lowered graph, and narrower floats and weights."""
