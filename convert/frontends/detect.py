"""Which kind of file a model is: recognised by content, never by name."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from ..errors import LoadError
from ..ir import TracedModule
from ..source import Source
from .container.archive import is_container
from .megengine.unpickler import is_pickle

HEAD_BYTES = 64
HELP = "give a .tm file: megengine.save writes it from a TracedModule, `tmconvert save` from any model"
# (offset, bytes, what such a file is): for a telling message about a file we do not read
KNOWN = (
    (0, b"PK\x03\x04", "a ZIP archive (a PyTorch checkpoint, perhaps)"),
    (4, b"TFL3", "a TFLite model: it is what tmconvert writes, not what it reads"),
    (0, b"\x08", "protobuf (an ONNX model, perhaps): it is what tmconvert writes, not what it reads"),
)


def load_model(path: str | PathLike[str]) -> TracedModule:
    """The model in the file. Raises LoadError TM1001 or TM1002, or what the format's loader raises."""
    name = fspath(path)
    head = _head(name)
    if is_pickle(head):
        from .megengine.loader import load_megengine

        return load_megengine(name)
    if is_container(head):
        from .container.reader import load_container

        return load_container(name)
    kind = next((what for offset, mark, what in KNOWN if head[offset:].startswith(mark)), None)
    notes = [("it is", kind)] if kind else []
    if not head:
        notes = [("it is", "empty")]
    raise LoadError(
        "TM1002",
        "this is no model file that tmconvert reads",
        source=Source(name),
        notes=[*notes, ("help", HELP)],
    )


def _head(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LoadError("TM1001", f"cannot read the model file: {reason}", source=Source(name)) from error
