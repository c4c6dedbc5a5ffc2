"""Errors of ONNX files."""

from __future__ import annotations

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source

_AGAIN = "copy the file again, or export it again; `onnx.checker.check_model` tells what is wrong with it"


def damaged(path: str, cause: str, place: str = "") -> LoadError:
    """The file is not a valid ONNX model."""
    return LoadError(
        "TM1031",
        "the file contains no valid ONNX model",
        source=Source(path, scope=place),
        notes=[("cause", cause), ("help", _AGAIN)],
    )


def outside(path: str, cause: str, place: str = "") -> LoadError:
    """The external data of a model cannot be read, or are where a model may not point."""
    return LoadError(
        "TM1032",
        f"the external data of the model cannot be read: {cause}",
        source=Source(path, scope=place),
        notes=[
            ("help", "put the files of external data into the folder of the model, as they were exported")
        ],
    )


def unknown_part(path: str, what: str, help: str, place: str = "") -> LoadError:
    """The model has a part that tmconvert does not read."""
    return LoadError("TM1033", what, source=Source(path, scope=place), notes=[("help", help)])
