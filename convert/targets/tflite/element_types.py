"""The element types that releases of TFLite run each operator with.

``data/element_types.txt`` is made by tools/make_tflite_types.py: the releases that were measured, and lines
of an operator, its types, and the N of the first release 2.N that runs it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_DATA = Path(__file__).parent / "data/element_types.txt"
OLDEST, NEWEST = 14, 23  # of the releases 2.N that were measured


@cache
def first_releases() -> dict[str, dict[str, int]]:
    """Returns the N of the first release 2.N by operator and types; 99 where none runs them."""
    found: dict[str, dict[str, int]] = {}
    for line in _DATA.read_text(encoding="utf-8").partition("\n\n")[2].splitlines():
        name, types, release = line.split(" ")
        found.setdefault(name, {})[types] = int(release)
    return found
