"""Errors of damaged or unsupported containers."""

from __future__ import annotations

from tmconvert.errors import LoadError

_AGAIN = ("help", "copy the file again, or write it again with `tmconvert save`")
_BY_HAND = ("help", "no release of tmconvert writes such a file: write it again with `tmconvert save`")


def broken_archive(message: str) -> LoadError:
    """The ZIP archive is inconsistent, or contradicts the size of the file."""
    return LoadError("TM1010", message, notes=[_AGAIN])


def refused_member(message: str) -> LoadError:
    """The archive has a member that a container must not have."""
    return LoadError("TM1011", message, notes=[_BY_HAND])


def newer(message: str) -> LoadError:
    """The file has a later version of the format."""
    return LoadError("TM1012", message, notes=[("help", "read it with a newer tmconvert")])


def unknown_vocabulary(identifier: str) -> LoadError:
    """The model is in the words of a frontend that is not part of this release."""
    return LoadError(
        "TM1012",
        f"the model uses the vocabulary {identifier[:80]!r}, which this tmconvert does not know",
        notes=[("help", "read it with a newer tmconvert, or with the package or plugin that registers it")],
    )


def bad_json(message: str) -> LoadError:
    """A JSON text in the container is not valid or not allowed."""
    return LoadError("TM1013", message, notes=[_AGAIN])


def bad_tensors(message: str) -> LoadError:
    """Tensors overlap, or do not fit their member."""
    return LoadError("TM1014", message, notes=[_AGAIN])


def nonsense(message: str) -> LoadError:
    """The JSON is valid, but does not describe a model."""
    return LoadError("TM1015", message, notes=[_AGAIN])


def over_limit(message: str) -> LoadError:
    """Reading the file would use more time or memory than its size justifies."""
    return LoadError("TM1006", message, notes=[_BY_HAND])
