"""Sample calls of everything that the MegEngine adapters know, one file a family: read by two programs.

``tools/megengine_data/make_adapters.py`` makes each call in MegEngine (Python 3.8: only NumPy is imported
here) and writes the results of a family to ``tests/data/made/adapters/``; ``test_adapter_samples.py``
makes it by the adapters. Arrays stand for tensors, ``Known`` for tensors that are constants of the
model; all else is a constant of the call. A family is a file with ``SAMPLES``, calls by row, most of them in
its ``*.rows``.
"""

import importlib
from pathlib import Path

from .common import Call, Grid, Int8, Known, Part, call, made, numbers, parameter

__all__ = [
    "FAMILIES",
    "SAMPLES",
    "Call",
    "Grid",
    "Int8",
    "Known",
    "Part",
    "call",
    "calls_of",
    "made",
    "numbers",
    "parameter",
]

FAMILIES = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in ("__init__", "common")
)


def _samples(family):
    return importlib.import_module("." + family, __name__).SAMPLES


def calls_of(family):
    """(row, key of the sample, Call) of every sample of one family; a key is ``row.number``."""
    return [
        (row, f"{row}.{i}", each) for row, calls in _samples(family).items() for i, each in enumerate(calls)
    ]


SAMPLES = {row: calls for family in FAMILIES for row, calls in _samples(family).items()}
