"""Adapters of MegEngine's raw operators (``Apply``)."""
