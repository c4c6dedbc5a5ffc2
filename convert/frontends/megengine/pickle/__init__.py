"""Reads pickles as inert records, without running any of their code."""
