"""Shared by the frontends: adapter tables, arguments, indexing."""
