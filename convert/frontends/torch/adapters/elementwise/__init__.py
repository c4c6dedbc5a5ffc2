"""Adapters of elementwise functions and element types."""
