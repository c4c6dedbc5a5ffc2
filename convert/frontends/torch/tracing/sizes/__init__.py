"""Sizes that Python computes: integers with provenance, and their validation at other sizes."""
