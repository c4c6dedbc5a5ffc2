"""The coefficients of Cephes' polynomials, from ``data/cephes.txt``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "data/cephes.txt"


@cache
def _entries() -> dict[str, tuple[float, ...]]:
    lines = [line for line in _FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    entries = map(str.split, re.split(r"\n(?=\S)", "\n".join(lines)))
    return {name: tuple(map(float, numbers)) for name, *numbers in entries}


def coefficients(*names: str) -> tuple[tuple[float, ...], ...]:
    """Returns the coefficients of each entry, from the highest power on.

    >>> coefficients("near_j0")[0][0]
    -4794432209.782018
    """
    return tuple(_entries()[name] for name in names)
