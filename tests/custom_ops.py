"""The page docs/custom-ops.md, whose code the tests run as it stands there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "custom-ops.md"


@cache
def blocks() -> dict[str, list[str]]:
    """The blocks of Python by the heading above them."""
    parts = re.split(r"^#+ (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = zip(parts[1::2], parts[2::2], strict=True)
    return {title: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for title, text in found}


def run(title: str, number: int = 0, **given: object) -> dict[str, Any]:
    """Runs a block, which may use the names ``given``; what it defines."""
    names: dict[str, Any] = {"__name__": "example", **given}
    exec(compile(blocks()[title][number], str(PAGE), "exec"), names)
    return names


@cache
def defined_op() -> dict[str, Any]:
    """The names of the block that defines ``mylib::swish``, which runs once a process.

    PyTorch frees an op when another one gets its name, and modules that still call the first one then read
    freed memory.
    """
    return run("An op of torch.library")
