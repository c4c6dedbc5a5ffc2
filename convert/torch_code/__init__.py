"""Generates PyTorch code for a graph: trainable modules, and packages that need only torch."""
