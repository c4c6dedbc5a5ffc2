"""Errors of TFLite files."""

from __future__ import annotations

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source

_AGAIN = "copy the file again, or convert the model again; LiteRT's interpreter refuses such a file, too"


def damaged(path: str, cause: str, place: str = "") -> LoadError:
    """The file is not a valid TFLite model."""
    return LoadError(
        "TM1041",
        "the file contains no valid TFLite model",
        source=Source(path, scope=place),
        notes=[("cause", cause), ("help", _AGAIN)],
    )


def unknown_part(path: str, what: str, help: str, place: str = "") -> LoadError:
    """The model has a part that tmconvert does not read."""
    return LoadError("TM1042", what, source=Source(path, scope=place), notes=[("help", help)])


def damaged_result(path: str) -> LoadError:
    """A file that is run, inspected or verified is not a valid TFLite model."""
    return LoadError("TM1009", "this is a damaged TFLite file", source=Source(path))
