"""Descriptions of models and written files: contents, sizes, runs, latency, and differences between two."""
