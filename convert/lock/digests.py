"""SHA-256 digests of files, and how paths are written in records that lie next to them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tmconvert.formats.mapped_file import open_regular

_CHUNK = 1 << 20


def file_digest(path: Path) -> str | None:
    """Returns the SHA-256 of a file; None if it cannot be read."""
    made = hashlib.sha256()
    try:
        with open_regular(path) as file:
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                made.update(chunk)
    except (OSError, ValueError):
        return None
    return made.hexdigest()


def relative_path(path: Path, folder: Path) -> str:
    """Returns a path as it is from a folder, with the same separators on all systems."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive of Windows
        return path.absolute().as_posix()
