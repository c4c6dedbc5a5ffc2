"""The explanation of each error code, from explanations.toml; ``tmconvert explain TM2003`` prints one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Explanation:
    """One line of title, when the error occurs (cause), an example, and how to resolve it (remedy)."""

    title: str
    cause: str
    example: str
    remedy: str


TEXTS = Path(__file__).with_suffix(".toml")
EXPLANATIONS = {
    code: Explanation(**fields) for code, fields in tomllib.loads(TEXTS.read_text(encoding="utf-8")).items()
}
