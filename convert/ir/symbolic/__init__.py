"""Symbolic sizes: integer expressions of named symbols, with bounds and guards."""
