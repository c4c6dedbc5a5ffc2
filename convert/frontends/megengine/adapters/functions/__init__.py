"""Adapters of MegEngine's functions and tensor methods."""
