"""Adapters of reductions, norms, order statistics and segments."""
