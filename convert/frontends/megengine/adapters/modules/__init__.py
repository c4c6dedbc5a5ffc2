"""Adapters of MegEngine's built-in modules."""
