"""Writes a model in MegEngine's words as a file that MegEngine loads."""
