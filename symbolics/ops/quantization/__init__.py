"""Ops that change quantization parameters."""
