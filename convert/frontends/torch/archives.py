"""What a file of PyTorch is: recognised by content, without torch."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """What wrote the file."""

    EXPORTED = "torch.export.save"
    SCRIPT = "torch.jit.save"
    CHECKPOINT = "torch.save"


# torch.save before release 1.6: a pickle of this number comes first
OLD_CHECKPOINT = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def kind_of(path: str, head: bytes) -> Kind | None:
    """The kind of a file that begins with ``head``; None for what PyTorch does not write."""
    if head[:1] == b"\x80" and head[2:].startswith(OLD_CHECKPOINT):
        return Kind.CHECKPOINT
    if not head.startswith(b"PK\x03\x04"):
        return None
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    inner = {name.partition("/")[2] for name in names}
    if "archive_format" in inner or "serialized_exported_program.json" in names:
        return Kind.EXPORTED
    if "constants.pkl" in inner:
        return Kind.SCRIPT
    return Kind.CHECKPOINT if "data.pkl" in inner else None
