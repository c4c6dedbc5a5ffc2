"""Formats numbers for people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Returns ``1 operator``, ``45 operators``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def quantity(number: int, noun: str) -> str:
    """Returns ``248 parameters``, ``11.2 M parameters``."""
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            return f"{number / factor:.1f} {unit} {noun}s"
    return counted(number, noun)


def size(number: int) -> str:
    """Returns ``812 bytes``, ``44.7 MB``, in powers of 1000."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return counted(number, "byte")
