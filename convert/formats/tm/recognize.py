"""Recognizes containers."""

from __future__ import annotations

from tmconvert.formats.tm.format import DESCRIPTION, LOCAL_HEADER, LOCAL_MARK


def is_container(head: bytes) -> bool:
    """Whether the first bytes are those of a container, whose first member is ``tm.json``."""
    return head.startswith(LOCAL_MARK) and head[LOCAL_HEADER.size :].startswith(DESCRIPTION.encode())
