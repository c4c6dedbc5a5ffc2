"""What is wrong with a pickle, before it is known where.

The builders see values, not bytes: they raise ``PickleFault``, and the reader turns it into a
``LoadError`` with the path and the byte offset of the opcode.
"""

from __future__ import annotations

DAMAGED = "TM1003"
REFUSED = "TM1004"
NOT_A_MODULE = "TM1005"
OVER_LIMIT = "TM1006"


class PickleFault(Exception):
    """One reason to stop reading; ``help`` says what the user can do, if anything."""

    def __init__(self, code: str, message: str, help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def damaged(message: str) -> PickleFault:
    """The pickle breaks its own rules: truncated, or a byte was changed."""
    return PickleFault(DAMAGED, message, "the file is damaged; copy or save it again")


def refused(message: str) -> PickleFault:
    """The pickle asks for something that no TracedModule needs."""
    return PickleFault(
        REFUSED,
        message,
        "tmconvert runs no code of a model file; "
        "if you trust the file, load it in MegEngine and save only the traced module",
    )


def over_limit(message: str) -> PickleFault:
    """The pickle is well formed, but would cost time or memory out of proportion to its size."""
    return PickleFault(OVER_LIMIT, message)
