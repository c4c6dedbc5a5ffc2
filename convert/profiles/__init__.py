"""Profiles: what accelerators and small runtimes run, as data, and the rules by which files are judged."""
