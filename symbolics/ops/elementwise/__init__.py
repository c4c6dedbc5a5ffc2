"""Ops that compute each element from the elements at its index: arithmetic, comparisons, activations."""
