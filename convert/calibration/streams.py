"""Reads arrays of files in blocks of rows, to limit memory."""

from __future__ import annotations

import contextlib
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

SUFFIX = ".npy"
PICKLED = "it holds Python objects, which would have to be unpickled"


class Member:
    """An array of a .npz file, read from the zip as a stream, compressed or not.

    Raises ValueError for arrays of Python objects, which only pickle can read, and for members that are not
    arrays.
    """

    def __init__(self, archive: Path, name: str) -> None:
        self.archive, self.name = archive, name
        with self._opened() as stream:
            self.shape, self.is_fortran, self.dtype = _header(stream)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        with zipfile.ZipFile(self.archive) as archive, archive.open(self.name) as stream:
            yield stream

    def whole(self) -> np.ndarray:
        with self._opened() as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)

    def parts(self, rows: int) -> Iterator[np.ndarray]:
        """Yields blocks of ``rows`` along the first axis; an incomplete last block is omitted."""
        if self.is_fortran:
            yield from parts(self.whole(), rows)
            return
        shape = (rows, *self.shape[1:])
        size = math.prod(shape) * self.dtype.itemsize
        with self._opened() as stream:
            _header(stream)
            for _ in range(self.shape[0] // rows):
                content = stream.read(size)
                if len(content) < size:
                    raise ValueError(f"{self.name} ends before its last row")
                yield np.frombuffer(content, self.dtype).reshape(shape)


def members(archive: Path) -> dict[str, Member]:
    """Returns the arrays of a .npz file by name."""
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name.endswith(SUFFIX)]
    return {name.removesuffix(SUFFIX): Member(archive, name) for name in names}


def parts(array: np.ndarray | Member, rows: int) -> Iterator[np.ndarray]:
    """Yields blocks of ``rows`` along the first axis."""
    if isinstance(array, Member):
        yield from array.parts(rows)
        return
    for i in range(0, array.shape[0] - rows + 1, rows):
        yield array[i : i + rows]


def whole(array: np.ndarray | Member) -> np.ndarray:
    return array.whole() if isinstance(array, Member) else array


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError(PICKLED)
    return shape, is_fortran, dtype
