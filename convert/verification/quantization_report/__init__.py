"""Reports of quantization noise per layer, as text, JSON and HTML."""
