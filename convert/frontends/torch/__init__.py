"""PyTorch: the meaning of its calls in aten-style ops, and in ``tracing/`` what records them."""
