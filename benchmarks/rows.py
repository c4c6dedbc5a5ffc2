"""Tables of the benchmarks: files with a name, " | " and a text in each row."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def sections(path: Path) -> dict[str, list[str]]:
    """Returns the lines of a file by section, which begins with ``== NAME``; those before the first are "".

    An indented line continues the one before it. Comments, which begin with ``#``, are left out.
    """
    found: dict[str, list[str]] = {"": []}
    lines = found[""]
    for line in path.read_text(encoding="utf-8").replace("\n  ", " ").splitlines():
        if line.startswith("== "):
            lines = found.setdefault(line[3:], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def table(file: str, names: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of the rows of the ``*.models`` file next to a module, by name.

    ``names`` are those of the module, in which the texts are evaluated.
    """
    rows = (line.split(" | ", 1) for line in sections(Path(file).with_suffix(".models"))[""])
    return {name: eval(text, names) for name, text in rows}
