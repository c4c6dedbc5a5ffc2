"""Errors in a pickle, before their position in the file is known.

The builders see values, not bytes: they raise ``PickleFault``, and the reader turns it into a
``LoadError`` with the path and the byte offset of the opcode.
"""

from __future__ import annotations

DAMAGED = "TM1003"
REFUSED = "TM1004"
NOT_A_MODULE = "TM1005"
OVER_LIMIT = "TM1006"


class PickleFault(Exception):
    """A reason to stop reading; ``help`` is the remedy, if any."""

    def __init__(self, code: str, message: str, help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def damaged(message: str) -> PickleFault:
    """The pickle is malformed: truncated, or a byte was changed."""
    return PickleFault(DAMAGED, message, "the file is damaged; copy or save it again")


def refused(message: str) -> PickleFault:
    """The pickle names a function or class that no TracedModule needs."""
    return PickleFault(
        REFUSED,
        message,
        "tmconvert does not run code from a model file; if you trust the file, load it in MegEngine "
        "and save only the traced module",
    )


def over_limit(message: str) -> PickleFault:
    """The pickle is well formed, but would use time or memory out of proportion to its size."""
    return PickleFault(OVER_LIMIT, message)
