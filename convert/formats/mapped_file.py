"""Opens files of users: only regular ones, since a device or a pipe may have no end."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from os import PathLike
from typing import BinaryIO

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source

CANNOT_READ = "TM1001"


def open_regular(path: str | PathLike[str]) -> BinaryIO:
    """Opens a regular file for reading, without waiting for the other end of a pipe.

    Raises OSError, also for folders, devices and pipes, and ValueError for a path that cannot be one.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | PathLike[str]) -> bytes:
    """Returns the bytes of a regular file. Raises what ``open_regular`` raises."""
    with open_regular(path) as file:
        return file.read()


def map_file(path: str) -> memoryview:
    """Maps a file read-only for as long as it is referenced. Raises LoadError TM1001."""
    try:
        with open_regular(path) as file:
            # A mapping of no bytes is an error.
            is_empty = file.seek(0, os.SEEK_END) == 0
            return memoryview(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LoadError(CANNOT_READ, f"cannot read the model file: {reason}", source=Source(path)) from error
