"""Maps model files into memory."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source

CANNOT_READ = "TM1001"


def map_file(path: str) -> memoryview:
    """Maps a file read-only for as long as it is referenced. Raises LoadError TM1001."""
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file"
            raise LoadError(CANNOT_READ, f"cannot read the model file: {kind}", source=Source(path))
        with Path(path).open("rb") as file:
            # A mapping of no bytes is an error.
            is_empty = file.seek(0, os.SEEK_END) == 0
            return memoryview(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LoadError(CANNOT_READ, f"cannot read the model file: {reason}", source=Source(path)) from error
