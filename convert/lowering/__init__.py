"""Lowering: converts a graph of ATen ops to operators of a target."""
