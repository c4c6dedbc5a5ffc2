"""Adapters of fake quantization, observers and integer modules."""
