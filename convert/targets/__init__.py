"""The targets: one folder each, with the interface of ``targets/target.py``."""
