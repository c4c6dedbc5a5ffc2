"""Writes the elements of constants in file order, without copies of large ones."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from tmconvert.ir.lazy_constants import Array, Lazy, computed, viewed

# So much is made contiguous at a time: it stays in the processor's cache.
_ROWS_BYTES = 1 << 18


class Sink(Protocol):
    """A destination of bytes."""

    def write(self, piece: Any, /) -> object: ...


class ElementWriter:
    """Writes the elements of constants to ``file``, in C order and little-endian.

    Contiguous arrays of that type are written directly. Others are copied, cast or computed a few rows at a
    time, in a buffer of 256 KiB.
    """

    def __init__(self, file: Sink) -> None:
        self._file = file
        self._buffer = np.empty(_ROWS_BYTES, np.uint8)

    def write(self, data: Array, dtype: np.dtype | None = None) -> None:
        """Writes the elements, cast to ``dtype`` if that is given."""
        self._write(data, _little_endian(data.dtype if dtype is None else dtype))

    def _write(self, data: Array, dtype: np.dtype) -> None:
        size = data.size * dtype.itemsize
        if isinstance(data, np.ndarray) and data.dtype == dtype and data.flags.c_contiguous:
            self._file.write(data.reshape(-1).view(np.uint8).data)
        elif size <= len(self._buffer):
            self._pass_through(data, dtype, size)
        else:
            count = data.shape[0]
            step = max(1, count * len(self._buffer) // size)
            for rows in [0] if count == 1 else [slice(i, i + step) for i in range(0, count, step)]:
                self._write(viewed(data, itemgetter(rows)), dtype)

    def _pass_through(self, data: Array, dtype: np.dtype, size: int) -> None:
        out = self._buffer[:size].view(dtype).reshape(data.shape)
        if isinstance(data, Lazy) and data.dtype == dtype:
            data.compute(out)
        else:
            from tmconvert.ir.tiles import copy_elements

            copy_elements(out, computed(data))
        self._file.write(self._buffer[:size].data)


def _little_endian(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("<") if dtype.kind in "biufc" else dtype  # ml_dtypes know no other order
