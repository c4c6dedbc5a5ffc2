"""Packages of ultralytics: ``model.onnx`` with the metadata that its AutoBackend reads."""

from __future__ import annotations

from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.entry import trace_detector
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import Converted, Kind, Modules
from tmconvert.packaging.source import PackageSource
from tmconvert.packaging.tasks import ONCE


def _find(name: str, *, download: bool, allow_code: bool) -> PackageSource:
    """Returns a checkpoint. Raises LoadError TM1001, TM1025, TM1028."""
    path = Path(name)
    if not path.is_file():
        raise LoadError("TM1001", f"there is no file {name}")
    if path.suffix != ".pt":
        raise LoadError("TM1028", "it is not a checkpoint of ultralytics (.pt)", source=Source(name))
    if not allow_code:
        raise LoadError(
            "TM1025",
            "this is a checkpoint of ultralytics: a pickle, which runs code when it is loaded",
            source=Source(name),
            notes=[("help", "if you trust its origin, use --allow-code (allow_code=True)")],
        )
    return PackageSource(path, {"architectures": [path.stem]}, {})


def _trace(source: PackageSource, task: str) -> Modules:
    return {"": trace_detector(source.folder)}


def _write(made: Converted) -> None:
    """Writes nothing: the metadata are in the model file."""


KIND = Kind(
    "ultralytics",
    Consumer("ultralytics", "open_ultralytics.py", "pip install ultralytics"),
    {ONCE: {"": "model.onnx"}},
    find=_find,
    task=lambda source: ONCE,
    trace=_trace,
    write=_write,
)
