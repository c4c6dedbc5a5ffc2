"""Quantization parameters of models, and files of them."""
