"""Quantization parameters of models, and their file formats."""
