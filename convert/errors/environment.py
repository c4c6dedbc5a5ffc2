"""Failures of the system: a full disk, a removed working folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tmconvert.errors import TmconvertError, WriteError
from tmconvert.errors.source import Source

# of disks and limits
_NUMBERS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG}
)


def environment_error(error: OSError) -> WriteError | None:
    """Returns TM5001 for an error of the system, such as a full disk or a removed working folder, or None."""
    if error.errno in _NUMBERS:
        where = f" {error.filename:.200}" if isinstance(error.filename, str) else ""
        return WriteError(
            "TM5001", f"the operating system reported an error{where}: {os.strerror(error.errno or 0)}"
        )
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        help = "change to another folder: relative paths mean nothing without one"
        return WriteError("TM5001", "the working folder was removed", notes=[("help", help)])
    return None


def memory_error(what: str = "", *, source: Source | None = None, excerpt: str = "") -> TmconvertError:
    """Returns TM5003; ``what`` needs more memory than there is."""
    message = f"there is not enough memory for {what}" if what else "there is not enough memory"
    help = "close other programs, or use a larger machine"
    return TmconvertError("TM5003", message, source=source, excerpt=excerpt, notes=[("help", help)])


def _has_working_folder() -> bool:
    try:
        return bool(Path.cwd())
    except OSError:
        return False
