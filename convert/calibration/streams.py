"""Reads arrays of files in blocks of rows, to limit memory."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from tmconvert.formats.mapped_file import open_regular

SUFFIX = ".npy"
PICKLED = "it holds Python objects, which would have to be unpickled"


class _Archive:
    """A .npz file that is opened once, however many of its members are read; pickles hold the path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[type[_Archive], tuple[Path]]:
        return _Archive, (self.path,)

    @cached_property
    def _file(self) -> BinaryIO:
        return open_regular(self.path)

    @cached_property
    def opened(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self._file)

    def __del__(self) -> None:
        if "_file" in vars(self):
            self._file.close()


class Member:
    """An array of a .npz file, read from the zip as a stream, compressed or not.

    Raises ValueError for arrays of Python objects, which only pickle can read, and for members that are not
    arrays.
    """

    def __init__(self, archive: _Archive, name: str) -> None:
        self._archive, self.name = archive, name
        with self._opened() as stream:
            self.shape, self.is_fortran, self.dtype = _header(stream)

    def _opened(self) -> IO[bytes]:
        return self._archive.opened.open(self.name)

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


def members(path: Path) -> dict[str, Member]:
    """Returns the arrays of a .npz file by name."""
    archive = _Archive(path)
    names = [name for name in archive.opened.namelist() if name.endswith(SUFFIX)]
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
