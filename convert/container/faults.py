"""Errors of containers that are damaged, or of a later release."""

from __future__ import annotations

from tmconvert.errors import LoadError
from tmconvert.formats.tm.faults import AGAIN


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


def nonsense(message: str) -> LoadError:
    """The JSON is valid, but does not describe a model."""
    return LoadError("TM1015", message, notes=[AGAIN])
