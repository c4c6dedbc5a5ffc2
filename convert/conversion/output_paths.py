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

COMMANDS = {
    ".onnx": "onnx",
    **dict.fromkeys((".tflite", ".lite"), "tflite"),
    **dict.fromkeys((".prototxt", ".caffemodel"), "caffe"),
    ".tm": "save",
    **dict.fromkeys((".html", ".htm"), "view"),
}


def check_names(kind: str, suffixes: Sequence[str], outputs: Sequence[Path]) -> None:
    """Raises UsageError TM6002 for suffixes other than ``suffixes``, those of ``kind``, and for ``-``."""
    for path in outputs:
        suffix = path.suffix.lower()
        if str(path) == "-":
            reason, help = "- is not a file, and nothing is written to stdout", "pass the name of a file"
        elif suffix in MODEL_SUFFIXES.difference(suffixes):
            reason = f"{path} has the suffix {suffix}; that of {kind} is {suffixes[0]}"
            command = command_of_suffix(path)
            other = f"`tmconvert {command}`, which writes such files" if command else "another command"
            help = f"change the name to {path.with_suffix(suffixes[0]).name}, or use {other}"
        else:
            continue
        raise UsageError("TM6002", reason, notes=[("help", help)])


def command_of_suffix(path: str | PathLike[str]) -> str:
    """Returns the command that writes files with the suffix of a path; empty where there is none."""
    return COMMANDS.get(Path(path).suffix.lower(), "")


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
