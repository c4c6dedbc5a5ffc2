"""The conditions of ``--fail-on``: which differences make a gate fail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tmconvert.difference.changes import KINDS
from tmconvert.errors import UsageError

MEASURES = ("size", "parameters", "macs", "latency")
GROUPS = {"operators": ("removed", "added", "replaced", "fused"), "any": KINDS}
_NAMES = ("changed-outputs", *GROUPS, *KINDS)


class Limit(NamedTuple):
    """A condition: a kind of change, or a measure with the largest growth that is allowed, as a share."""

    text: str
    name: str
    growth: float | None = None

    def kinds(self) -> tuple[str, ...]:
        """Returns the kinds of changes that it forbids."""
        return GROUPS.get(self.name, (self.name,)) if self.growth is None else ()


def parse_limits(texts: Sequence[str]) -> list[Limit]:
    """Returns the conditions. Raises UsageError TM6002 for an unknown one.

    >>> parse_limits(["operators", "size+5%"])
    [Limit(text='operators', name='operators', growth=None), Limit(text='size+5%', name='size', growth=0.05)]
    """
    return [_parsed(each) for text in texts for each in re.split(r"[|,]", text)]


def _parsed(text: str) -> Limit:
    found = re.fullmatch(rf"({'|'.join(MEASURES)})\+(\d+(?:\.\d+)?)%", text)
    if found:
        return Limit(text, found[1], float(found[2]) / 100)
    if text in _NAMES:
        return Limit(text, text)
    measures = ", ".join(f"{each}+N%" for each in MEASURES)
    raise UsageError(
        "TM6002", f"unknown condition {text!r}", notes=[("help", f"use {', '.join(_NAMES)}, {measures}")]
    )
