"""Checks of the paths of files to write."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tmconvert.errors import UsageError

CONTAINER_SUFFIXES = (".tm",)
# suffixes by which people and programs know a file as a model of some kind
MODEL_SUFFIXES = frozenset(
    {".tm", ".onnx", ".tflite", ".lite", ".prototxt", ".caffemodel", ".pt", ".pth", ".pt2", ".safetensors"}
)


def check_names(kind: str, suffixes: Sequence[str], outputs: Sequence[Path]) -> None:
    """Raises UsageError TM6002 for suffixes of other file formats than ``suffixes``, and for ``-``."""
    for path in outputs:
        if str(path) == "-":
            what, help = "not a file, and nothing is written to stdout", "pass the name of a file"
        elif path.suffix.lower() in MODEL_SUFFIXES.difference(suffixes):
            what = f"no {kind} file by name"
            help = f"use the suffix {suffixes[0]}, or another command"
        else:
            continue
        raise UsageError("TM6002", f"{path} is {what}", notes=[("help", help)])


def keep_model(model: Any, *outputs: Path) -> None:
    """Raises UsageError for an output that is the model itself, and for two outputs with one path."""
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        names = ", ".join(map(str, outputs))
        raise UsageError("TM6007", f"two outputs would be the same file: {names}")
    if not isinstance(model, (str, PathLike)):
        return
    for path in outputs:
        with contextlib.suppress(OSError, ValueError):  # one of them does not exist, or cannot
            if path.samefile(model):
                raise UsageError(
                    "TM6013",
                    f"{path} is the model itself, which the output would replace",
                    notes=[("help", "choose another path for the output")],
                )
