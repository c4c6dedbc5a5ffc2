"""Tests of the tracer need torch."""

import importlib.util

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["*.py"]
