"""Sample arguments of every op, one file a family, for the tests that are generated from the catalogue.

Each op's samples run on every target that has a rule for it, at every version. Ranges are
those in which the op is finite; what an op's own test file tries is not repeated here.
A family is a file with ``SAMPLES``, lists of Sample by op.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from .common import Sample

__all__ = ["SAMPLES", "Sample"]

SAMPLES: dict[str, list[Sample]] = {}
for _path in sorted(Path(__file__).parent.glob("*.py")):
    if _path.stem not in ("__init__", "common"):
        SAMPLES.update(importlib.import_module(f".{_path.stem}", __name__).SAMPLES)
