"""The targets: one folder each, behind ``targets/target.py``."""
