"""Large arrays that are pages of a temporary file, which a system can take back from memory."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import numpy as np

from tmconvert.output.atomic import allocate

_LARGE = 1 << 24  # bytes


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


def return_free_memory() -> None:
    """Gives the system back what was freed: the library of C keeps blocks of megabytes for later use."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:  # of glibc
        trim(0)


def scratch_copy(array: np.ndarray) -> np.ndarray:
    """Returns a copy in a scratch array."""
    made = scratch_array(array.shape, array.dtype)
    made[...] = array
    return made
