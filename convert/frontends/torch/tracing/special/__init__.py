"""Features of torch that need a mode of their own: vmap, float8, gradients, packed sequences."""
