"""Post-training quantization: measures quantization parameters of float models on data."""
