"""Large arrays that are pages of a temporary file, which a system can take back from memory."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import numpy as np

from tmconvert.output.atomic import allocate

_LARGE = 1 << 24  # bytes
_MMAP_THRESHOLD, _BLOCK = -3, 1 << 22  # a parameter of glibc, and its value in bytes


def scratch_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns an array to fill: in memory if it is small, else in a file that is deleted with it.

    Raises: WriteError TM5001 for a full disk.

    >>> scratch_array((2, 3), np.dtype("float32")).shape
    (2, 3)
    """
    size = int(np.prod(shape)) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        allocate(file.fileno(), size, Path(tempfile.gettempdir()))  # else a full disk ends the process
        return np.memmap(file, dtype, "r+", shape=shape).view(np.ndarray)


def return_freed_blocks() -> None:
    """Makes the library of C return a large block to the system when it is freed, as far as it can.

    By default glibc keeps blocks of up to 32 MiB for later use, among which small ones then lie. Source:
    M_MMAP_THRESHOLD in mallopt(3).
    """
    choose = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if choose is not None:
        choose(_MMAP_THRESHOLD, _BLOCK)


def scratch_copy(array: np.ndarray) -> np.ndarray:
    """Returns a copy in a scratch array."""
    made = scratch_array(array.shape, array.dtype)
    made[...] = array
    return made
