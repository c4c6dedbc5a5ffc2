"""Errors of Caffe files."""

from __future__ import annotations

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.caffe.net import NetLayer


def place_of(path: str, layer: NetLayer | None = None) -> Source:
    """Returns the place of a layer in its text."""
    return Source(path) if layer is None else Source(path, layer.line or None, layer.name[:200], layer.type)


def unreadable(path: str, cause: str, line: int | None = None) -> LoadError:
    """The file is not a Caffe file."""
    help = f"`tmconvert lint {path}` lists all errors with their lines"
    notes = [("cause", cause), ("help", help)] if line is not None else [("cause", cause)]
    return LoadError("TM1016", "the file contains no valid Caffe net", source=Source(path, line), notes=notes)


def inconsistent(path: str, cause: str, layer: NetLayer | None = None) -> LoadError:
    """The layers do not fit together."""
    return LoadError(
        "TM1051",
        "the file contains no consistent Caffe net",
        source=place_of(path, layer),
        notes=[("cause", cause), ("help", f"`tmconvert lint {path}` lists all errors with their lines")],
    )


def unknown_part(path: str, what: str, help: str, line: int | None = None) -> LoadError:
    """The net has a part that tmconvert does not read."""
    return LoadError("TM1052", what, source=Source(path, line), notes=[("help", help)])


def without_weights(path: str, what: str, help: str, layer: NetLayer | None = None) -> LoadError:
    """The weights are missing, or have other shapes."""
    return LoadError("TM1053", what, source=place_of(path, layer), notes=[("help", help)])
