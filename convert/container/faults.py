"""What can be wrong with a container."""

from __future__ import annotations

from tmconvert.errors import LoadError

_AGAIN = ("help", "copy the file again, or make it anew with `tmconvert save`")
_BY_HAND = ("help", "no release of tmconvert writes such a file: make it anew with `tmconvert save`")


def broken_archive(message: str) -> LoadError:
    """The ZIP archive contradicts itself or the size of the file."""
    return LoadError("TM1010", message, notes=[_AGAIN])


def refused_member(message: str) -> LoadError:
    """The archive has something in it that no container has."""
    return LoadError("TM1011", message, notes=[_BY_HAND])


def newer(message: str) -> LoadError:
    """The file follows a later version of the format."""
    return LoadError("TM1012", message, notes=[("help", "read it with a newer tmconvert")])


def bad_json(message: str) -> LoadError:
    """A JSON text in the container is none, or none that a container may hold."""
    return LoadError("TM1013", message, notes=[_AGAIN])


def bad_tensors(message: str) -> LoadError:
    """Tensors overlap, or do not fit their member."""
    return LoadError("TM1014", message, notes=[_AGAIN])


def nonsense(message: str) -> LoadError:
    """The description is sound JSON and no model."""
    return LoadError("TM1015", message, notes=[_AGAIN])


def over_limit(message: str) -> LoadError:
    """The file would cost more time or memory than its size explains."""
    return LoadError("TM1006", message, notes=[_BY_HAND])
