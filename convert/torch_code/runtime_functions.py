"""Functions that are written into generated code where it calls them. The texts need torch only.

They are in ``data/runtime_functions.txt``.
"""

from __future__ import annotations

import re
from pathlib import Path

_DATA = Path(__file__).parent / "data/runtime_functions.txt"
# by name; each begins and ends with a line break
HELPERS: dict[str, str] = {
    text[4 : text.index("(")]: f"\n{text.rstrip()}\n"
    for text in re.split(r"\n\n(?=def )", _DATA.read_text(encoding="utf-8"))
}
_NAME = re.compile(r"(?<![\w.])_[a-z]\w*(?=\()")


def helpers_in(text: str) -> list[str]:
    """Returns the names of the helper functions that a text calls, those that they call included, sorted."""
    found: set[str] = set()
    waiting = [text]
    while waiting:
        for name in _NAME.findall(waiting.pop()):
            if name in HELPERS and name not in found:
                found.add(name)
                waiting.append(HELPERS[name])
    return sorted(found)
