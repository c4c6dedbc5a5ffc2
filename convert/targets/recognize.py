"""Detects the target of a written file from its content."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.tm.recognize import is_container
from tmconvert.targets.registry import target_named, target_names
from tmconvert.targets.target import Target

HEAD_BYTES = 4096


def written_target(model: object) -> Target | None:
    """Returns the target of a written file; None for a source model and unreadable files."""
    if not isinstance(model, (str, PathLike)):
        return None
    try:
        return _target_of(_head(Path(model)))
    except (OSError, ValueError):
        return None


def target_of_file(path: Path) -> Target:
    """The target of a file: ONNX, TFLite, prototxt, or another package's. Raises LoadError TM1001, TM1009."""
    try:
        head = _head(path)
    except OSError as error:
        raise LoadError(
            "TM1001", f"cannot read the file: {error.strerror}", source=Source(str(path))
        ) from error
    target = _target_of(head)
    if target is not None:
        return target
    raise LoadError(
        "TM1009",
        "this is not an ONNX, TFLite or Caffe model",
        source=Source(str(path)),
        notes=[
            (
                "help",
                "pass an ONNX or TFLite file, or a prototxt, with its caffemodel next to it; a source model "
                "has to be converted first",
            )
        ],
    )


def _target_of(head: bytes) -> Target | None:
    if is_container(head):
        return None
    return next((target for target in map(target_named, target_names()) if target.recognizes(head)), None)


def _head(path: Path) -> bytes:
    from tmconvert.formats.mapped_file import open_regular

    with open_regular(path) as file:
        return file.read(HEAD_BYTES)
