"""What is said of an error code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """``title`` says it in a line, ``cause`` when it comes up, ``example`` how, ``remedy`` what to do."""

    title: str
    cause: str
    example: str
    remedy: str
