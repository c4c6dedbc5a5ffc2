"""The explanation of an error code: title, cause, example and remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """One line of title, when the error occurs (cause), an example, and how to resolve it (remedy)."""

    title: str
    cause: str
    example: str
    remedy: str
