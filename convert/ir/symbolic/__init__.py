"""Symbolic sizes: integer expressions of named symbols, and what is known of them."""
