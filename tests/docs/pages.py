"""The pages of the documentation, and the blocks of code in them that tests run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TOP = [ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_RUN = re.compile(
    r'^<!-- run -->\n```(?P<kind>python|sh)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)


class Example(NamedTuple):
    """A block of code after ``<!-- run -->``; ``title`` is the file that it is saved as."""

    kind: str
    title: str | None
    text: str


def examples(page: Path) -> Iterator[Example]:
    """The blocks of a page that are run, in order."""
    for match in _RUN.finditer(page.read_text(encoding="utf-8")):
        yield Example(match["kind"], match["title"], match["text"])


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
