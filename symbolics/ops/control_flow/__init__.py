"""Branches, loops, and calls with subgraphs."""
