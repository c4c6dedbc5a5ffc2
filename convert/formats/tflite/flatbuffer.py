"""Reads tables of a flatbuffer; each offset is checked before it is used.

Source of the format: https://flatbuffers.dev/internals
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tmconvert.errors import LoadError

Fault = Callable[[str], LoadError]
# The elements of vectors that may be read: a damaged file may refer to one vector from many tables.
LEAST_ELEMENTS = 1 << 20
MOST_TABLES = 1 << 20
_KINDS = {
    "bool": "<?",
    "int8": "<b",
    "uint8": "<B",
    "uint16": "<H",
    "int32": "<i",
    "uint32": "<I",
    "int64": "<q",
    "uint64": "<Q",
    "float32": "<f",
}
_FORMATS = {kind: struct.Struct(code) for kind, code in _KINDS.items()}


class Flatbuffer:
    """The bytes of a file. ``fault`` makes the error for a damaged one."""

    def __init__(self, data: memoryview, fault: Fault) -> None:
        self.data = data
        self.fault = fault
        self._elements = max(LEAST_ELEMENTS, 4 * len(data))
        self._tables = MOST_TABLES

    def root(self) -> Table:
        """Returns the root table. Raises LoadError."""
        return self.table(self.offset(0))

    def number(self, kind: str, at: int) -> int | float:
        """Returns the number at a position."""
        form = _FORMATS[kind]
        self._check(at, form.size)
        value: int | float = form.unpack_from(self.data, at)[0]
        return value

    def integer(self, kind: str, at: int) -> int:
        """Returns the integer at a position."""
        return int(self.number(kind, at))

    def offset(self, at: int) -> int:
        """Follows the offset that is stored at a position: returns the position to which it leads."""
        return at + self.integer("uint32", at)

    def table(self, at: int) -> Table:
        """Returns the table at a position."""
        self._tables -= 1
        if self._tables < 0:
            raise self.fault(f"it has more than {MOST_TABLES} tables")
        vtable = at - self.integer("int32", at)
        size = self.integer("uint16", vtable)
        if size < 4 or size % 2:
            raise self.fault(f"the table at {at} has a vtable of {size} bytes")
        self._check(vtable, size)
        return Table(self, at, vtable, size)

    def vector(self, at: int, width: int) -> tuple[int, int]:
        """Returns where the elements of a vector begin, and how many there are."""
        count = self.integer("uint32", at)
        self._check(at + 4, count * width)
        return at + 4, count

    def spend(self, count: int) -> None:
        """Counts elements that are copied. Raises LoadError for too many."""
        self._elements -= count
        if self._elements < 0:
            raise self.fault("its vectors have more elements than the file")

    def content(self, start: int, size: int) -> memoryview:
        """Returns bytes of the file, which are not copied."""
        self._check(start, size)
        return self.data[start : start + size]

    def _check(self, at: int, size: int) -> None:
        if at < 0 or at + size > len(self.data):
            raise self.fault(f"an offset leads to {at}, but the file has {len(self.data)} bytes")


class Table(NamedTuple):
    """A table; its fields have numbers, their slots."""

    file: Flatbuffer
    at: int
    vtable: int
    size: int

    def field(self, slot: int) -> int | None:
        """Returns the position of a field; None for one that is not stored."""
        entry = 4 + 2 * slot
        if entry >= self.size:
            return None
        offset = self.file.integer("uint16", self.vtable + entry)
        return self.at + offset if offset else None

    def number(self, slot: int, kind: str, default: float = 0) -> int | float:
        """Returns a number, or the default."""
        at = self.field(slot)
        return default if at is None else self.file.number(kind, at)

    def integer(self, slot: int, kind: str, default: int = 0) -> int:
        """Returns an integer, or the default."""
        return int(self.number(slot, kind, default))

    def table(self, slot: int) -> Table | None:
        """Returns the table that a field refers to."""
        at = self.field(slot)
        return None if at is None else self.file.table(self.file.offset(at))

    def tables(self, slot: int) -> list[Table]:
        """Returns the tables of a vector."""
        at = self.field(slot)
        if at is None:
            return []
        start, count = self.file.vector(self.file.offset(at), 4)
        return [self.file.table(self.file.offset(start + 4 * number)) for number in range(count)]

    def content(self, slot: int, width: int = 1) -> tuple[memoryview, int]:
        """Returns the bytes of a vector with elements of ``width`` bytes, and the number of elements."""
        at = self.field(slot)
        if at is None:
            return memoryview(b""), 0
        start, count = self.file.vector(self.file.offset(at), width)
        return self.file.content(start, count * width), count

    def numbers(self, slot: int, kind: str) -> list[int | float]:
        """Returns the numbers of a vector."""
        dtype = np.dtype(kind).newbyteorder("<")
        content, count = self.content(slot, dtype.itemsize)
        self.file.spend(count)
        found: list[int | float] = np.frombuffer(content, dtype).tolist()
        return found

    def integers(self, slot: int, kind: str = "int32") -> list[int]:
        """Returns the integers of a vector."""
        return [int(each) for each in self.numbers(slot, kind)]

    def text(self, slot: int) -> str:
        """Returns a string; bytes that are not UTF-8 are replaced."""
        content, count = self.content(slot)
        self.file.spend(count)
        return bytes(content).decode("utf-8", "replace")
