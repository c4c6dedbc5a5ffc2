"""Which kind of written file this is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.output.metadata import OPTIONS


def written_target(path: Path) -> str:
    """ "onnx", "tflite" or "caffe" (a prototxt), by content. Raises LoadError TM1001, TM1009."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise LoadError(
            "TM1001", f"cannot read the file: {error.strerror}", source=Source(str(path))
        ) from error
    if head[4:8] == b"TFL3":
        return "tflite"
    if head[:1] == b"\x08":  # ModelProto.ir_version, the first field of every ONNX file
        return "onnx"
    text = head.decode("utf-8", "replace")
    if "layer" in text and "{" in text:
        return "caffe"
    raise LoadError(
        "TM1009",
        "this is no ONNX, TFLite or Caffe model",
        source=Source(str(path)),
        notes=[
            ("help", "give a .onnx, .tflite or .prototxt file; a caffemodel is found beside its prototxt")
        ],
    )


def written_options(path: Path, target: str) -> Mapping[str, Any]:
    """The options of the conversion that wrote the file, as its metadata says; empty where it does not."""
    if target == "tflite":
        from tmconvert.targets.tflite.reader import tflite_options

        return tflite_options(path)
    if target == "onnx":
        from tmconvert.targets.onnx.reader import onnx_options

        return onnx_options(path)
    return _caffe_options(path)


def _caffe_options(path: Path) -> Mapping[str, Any]:
    """Those of the comment in the first line of a prototxt."""
    with path.open("rb") as file:
        name, _, text = file.readline().decode("utf-8", "replace").removeprefix("# ").partition(": ")
    try:
        found = json.loads(text) if name == OPTIONS else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
