"""Reads files of users: regular ones only, since a device or a pipe may have no end.

The content is untrusted: names, numbers and attributes may be anything, and whatever they break is their
fault, not a defect.
"""

from __future__ import annotations

import contextlib
import errno
import math
import mmap
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import BinaryIO

from tmconvert.errors import GraphError, LoadError, TmconvertError
from tmconvert.errors.source import Source

CANNOT_READ = "TM1001"
MOST_AXES = 32  # of arrays in NumPy 1, and of most of its functions in NumPy 2
_MOST_ELEMENTS = 2**59  # 2**63 bytes of the largest type
_FREE_BYTES, _PER_BYTE = 64 << 20, 16  # that a file may take, and further ones for each that it stores
_FREE = 5_000  # operators that any file may expand to
_PER_OPERATOR = 50  # further ones for each that it stores


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


@contextlib.contextmanager
def blaming(damaged: Callable[[str], LoadError]) -> Iterator[None]:
    """Converts what the content of a file breaks within the block to the LoadError that ``damaged`` makes.

    >>> with blaming(lambda cause: LoadError("TM1009", cause)):
    ...     {}["shape"]
    Traceback (most recent call last):
    tmconvert.errors.LoadError: error[TM1009]: KeyError: 'shape'
    """
    try:
        yield
    except GraphError as error:
        raise damaged(error.message) from error
    except (TmconvertError, MemoryError):
        raise
    except Exception as error:  # libraries of formats have exceptions of their own
        from tmconvert.errors.environment import environment_error

        environmental = environment_error(error) if isinstance(error, OSError) else None
        if environmental is not None:
            raise environmental from error
        raise damaged(f"{type(error).__name__}: {error}"[:300]) from error


def shape_problem(shape: Iterable[object]) -> str:
    """Returns why no array has this shape; empty for a possible one, and for sizes that are not known."""
    sizes = [extent for extent in shape if isinstance(extent, int)]
    if len(sizes) > MOST_AXES:
        return f"has {len(sizes)} axes, more than {MOST_AXES}"
    negative = next((extent for extent in sizes if extent < 0), 0)
    if negative:
        return f"has the size {negative}"
    # NumPy multiplies the sizes of an array without elements, too
    is_possible = math.prod(extent or 1 for extent in sizes) < _MOST_ELEMENTS
    return "" if is_possible else f"has sizes that are too large together: {sizes}"


def unusable_file(path: str | PathLike[str], cause: str) -> LoadError:
    """Returns the error for a written file that cannot be read back."""
    return LoadError(
        "TM1009",
        "the file cannot be read back: it is damaged",
        source=Source(str(path)),
        notes=[("cause", cause)],
    )


def check_expanded(path: str, stored: int, expanded: int) -> None:
    """Raises LoadError TM1006 for a file of ``stored`` bytes that would take far more in memory."""
    if expanded > _FREE_BYTES + _PER_BYTE * stored:
        message = f"the file has {stored:,} bytes, and would take {expanded:,} in memory"
        raise LoadError("TM1006", message, source=Source(path), notes=[("help", "save the model again")])


class Expansion:
    """Counts the operators that the file at ``path`` expands to, which stores ``stored``.

    A function that calls another one twice, which calls a third one twice, is soon without end.
    """

    def __init__(self, path: str, stored: int) -> None:
        self.path = path
        self.most = _FREE + _PER_OPERATOR * stored
        self.count = 0

    def add(self) -> None:
        """Counts an operator. Raises LoadError TM1006 for more than the file may have."""
        self.count += 1
        if self.count > self.most:
            raise LoadError(
                "TM1006",
                f"the functions of the file call more than {self.most} operators",
                source=Source(self.path),
                notes=[("help", "export the model without functions, or with fewer calls of them")],
            )
