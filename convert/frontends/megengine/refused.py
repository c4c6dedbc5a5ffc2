"""Parts of MegEngine that no conversion supports, with reasons, from ``data/refused.toml``."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tmconvert.errors import Refusal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DATA = Path(__file__).parent / "data/refused.toml"


class Reason(NamedTuple):
    """``reason`` is the predicate of a sentence that begins with the name."""

    names: tuple[str, ...]
    reason: str
    instead: str


REASONS = [
    Reason(tuple(row["names"]), row["reason"], row["instead"])
    for row in tomllib.loads(_DATA.read_text(encoding="utf-8"))["reasons"]
]


def refusal_of(name: str) -> Refusal | None:
    """Returns the reason why calls of a MegEngine function are never supported; None for other functions."""
    for names, reason, instead in REASONS:
        if any(fnmatchcase(name, pattern) for pattern in names):
            return Refusal(f"{name} {reason}", instead)
    return None
