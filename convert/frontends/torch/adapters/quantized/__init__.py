"""Adapters of quantized ops and fake quantization."""
