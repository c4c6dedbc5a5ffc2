"""Recognizes pickles, which MegEngine's files are."""

from __future__ import annotations

PROTOCOLS = range(2, 6)
MARK = 0x80  # the opcode PROTO, with which pickles begin from protocol 2 on


def is_pickle(head: bytes) -> bool:
    """Whether the first bytes (two suffice) are those of a pickle of protocol 2 to 5."""
    return len(head) >= 2 and head[0] == MARK and head[1] in PROTOCOLS
