"""Detects the target of a written file from its content."""

from __future__ import annotations

from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.targets.registry import target_named, target_names
from tmconvert.targets.target import Target


def target_of_file(path: Path) -> Target:
    """The target of an ONNX or TFLite file or a prototxt. Raises LoadError TM1001, TM1009."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise LoadError(
            "TM1001", f"cannot read the file: {error.strerror}", source=Source(str(path))
        ) from error
    for name in target_names():
        target = target_named(name)
        if target.recognizes(head):
            return target
    raise LoadError(
        "TM1009",
        "this is not an ONNX, TFLite or Caffe model",
        source=Source(str(path)),
        notes=[
            (
                "help",
                ("pass a .onnx, .tflite or .prototxt file; a caffemodel is looked for next to its prototxt"),
            )
        ],
    )
