"""Runs written files on accelerators: GPUs, NPUs and browsers, each in a process of its own."""
