"""Errors of damaged archives, JSON texts and tensors of containers."""

from __future__ import annotations

from tmconvert.errors import LoadError

AGAIN = ("help", "copy the file again, or write it again with `tmconvert save`")
_BY_HAND = ("help", "no release of tmconvert writes such a file: write it again with `tmconvert save`")


def broken_archive(message: str) -> LoadError:
    """The ZIP archive is inconsistent, or contradicts the size of the file."""
    return LoadError("TM1010", message, notes=[AGAIN])


def refused_member(message: str) -> LoadError:
    """The archive has a member that a container must not have."""
    return LoadError("TM1011", message, notes=[_BY_HAND])


def bad_json(message: str) -> LoadError:
    """A JSON text in the container is not valid or not allowed."""
    return LoadError("TM1013", message, notes=[AGAIN])


def bad_tensors(message: str) -> LoadError:
    """Tensors overlap, or do not fit their member."""
    return LoadError("TM1014", message, notes=[AGAIN])


def over_limit(message: str) -> LoadError:
    """Reading the file would use more time or memory than its size justifies."""
    return LoadError("TM1006", message, notes=[_BY_HAND])
