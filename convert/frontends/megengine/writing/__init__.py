"""Writes a model of MegEngine's calls as a file that MegEngine loads."""
