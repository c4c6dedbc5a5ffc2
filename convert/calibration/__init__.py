"""Grids for float models, measured on data."""
