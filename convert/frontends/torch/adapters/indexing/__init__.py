"""Adapters of functions that select elements by data."""
