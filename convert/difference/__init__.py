"""Differences of two models: nodes that correspond, and what is different about them."""
