"""Ops that read or write elements selected by data."""
