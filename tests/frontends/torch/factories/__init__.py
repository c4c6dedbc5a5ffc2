"""Modules that are named on a command line."""
