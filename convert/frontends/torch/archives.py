"""Detects the kind of a PyTorch file from its content, without torch."""

from __future__ import annotations

import io
import zlib
from enum import Enum

from tmconvert.formats.mapped_file import open_regular


class Kind(Enum):
    """The kinds of PyTorch files."""

    EXPORTED = "torch.export.save"
    SCRIPT = "torch.jit.save"
    CHECKPOINT = "torch.save"
    MODULE = "torch.save of a whole module"
    GGUF = "GGUF"


# torch.save before release 1.6: a pickle of this number comes first
OLD_CHECKPOINT = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."

PICKLE_BYTES = 4096  # of a pickle, within which its first class is named
# modules of Python whose classes hold data
_OF_DATA = (
    "", "collections", "numpy", "builtins", "__builtin__", "argparse", "pathlib", "torch._utils", "torch",
)  # fmt: skip


def kind_of(path: str, head: bytes) -> Kind | None:
    """Returns the kind of a file that begins with ``head``; None for other files."""
    if head.startswith(b"GGUF") and path.endswith(".gguf"):
        return Kind.GGUF
    if head[:1] == b"\x80" and head[2:].startswith(OLD_CHECKPOINT):
        with open_regular(path) as file:
            return _checkpoint(file.read(PICKLE_BYTES))
    if not head.startswith(b"PK\x03\x04"):
        return None
    import zipfile

    pickled = b""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            for name in names:
                if name.partition("/")[2] == "data.pkl":
                    with archive.open(name) as member:
                        pickled = member.read(PICKLE_BYTES)
                    break
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError):
        return None
    inner = {name.partition("/")[2] for name in names}
    if "archive_format" in inner or "serialized_exported_program.json" in names:
        return Kind.EXPORTED
    if "constants.pkl" in inner:
        return Kind.SCRIPT
    return _checkpoint(pickled) if "data.pkl" in inner else None


def _checkpoint(pickled: bytes) -> Kind:
    """Whether the pickle is of a whole module: the first class that it names is a module class.

    Nothing of them is run. A state dict names an OrderedDict, or what tensors are made by, first.
    """
    home = _first_home(pickled)
    is_data = home in _OF_DATA or home.startswith(("numpy.", "torch._tensor"))
    return Kind.CHECKPOINT if is_data else Kind.MODULE


def _first_home(pickled: bytes) -> str:
    """Returns the Python module of the first class in a pickle; empty where there is none."""
    import pickletools

    stream, texts = io.BytesIO(pickled), [""]
    try:
        while stream.tell() < len(pickled):
            for opcode, argument, _ in pickletools.genops(stream):
                if opcode.name == "GLOBAL":
                    return str(argument).partition(" ")[0]
                if opcode.name == "STACK_GLOBAL":
                    return texts[-2] if len(texts) > 1 else ""
                if isinstance(argument, str):
                    texts.append(argument)
    except ValueError:  # it ends here, or is damaged
        pass
    return ""
