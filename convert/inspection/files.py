"""Recognizes written files among models."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tmconvert.container.archive import is_container
from tmconvert.frontends.caffe.recognize import is_prototxt
from tmconvert.frontends.onnx.recognize import is_onnx
from tmconvert.frontends.tflite.recognize import is_tflite
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import Target

HEAD_BYTES = 4096


def written_target(model: Any) -> Target | None:
    """Returns the target of a written file; None for a source model and unreadable files."""
    if not isinstance(model, (str, PathLike)):
        return None
    name = fspath(model)
    try:
        with Path(name).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return None
    if is_container(head):
        return None
    if is_onnx(head):
        return target_named("onnx")
    if is_tflite(head):
        return target_named("tflite")
    return target_named("caffe") if is_prototxt(head) else None
