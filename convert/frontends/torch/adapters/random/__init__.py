"""Adapters of functions that draw random numbers."""
