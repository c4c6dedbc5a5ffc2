"""Writes flatbuffers with large byte vectors after the tables, as a stream.

A flatbuffer points only forward, from a field to its vector, by the distance between them. So the tables can
be built first, with placeholders for these distances, and the vectors follow them in the file: each a uint32
length, little-endian, and its bytes, which begin at a multiple of 16. A reader sees a flatbuffer like any
other.

The tables are built from the end of the file to its beginning, since a table is stored before all that it
refers to; positions are distances from the end, which is a multiple of 16. Format: "FlatBuffers internals",
flatbuffers.dev.

A distance has 32 bits. Data beyond that range is referred to by its file offset and size, in two fields of 64
bits (TFLite's Buffer has them). Such bytes follow the flatbuffer, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tmconvert.errors import WriteError
from tmconvert.ir.lazy_constants import Array
from tmconvert.output.atomic import reserve
from tmconvert.output.element_writer import ElementWriter

# Flatbuffers' verifier wants less than this.
_SIZE_LIMIT = 2**31 - 1

_ALIGNMENT = 16
_LENGTH = struct.Struct("<I")
_DISTANCE = struct.Struct("<i")
_PLACE = struct.Struct("<Q")

# Slot, kind ("int8", "bool", ..., or "offset" for a string, vector or table), value.
Field = tuple[int, str, float]


# of each kind, its letter for ``struct`` and its bytes
_KINDS = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "uint8": ("B", 1),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "offset": ("I", 4),
    "float32": ("f", 4),
    "uint64": ("Q", 8),
    "int64": ("q", 8),
}


class _Bytes(NamedTuple):
    """Bytes after the tables, and the position of the offset that refers to them."""

    data: Array
    hole: int
    is_far: bool

    @property
    def head(self) -> int:
        """Returns the length field before the data."""
        return 0 if self.is_far else _LENGTH.size


class _Shape(NamedTuple):
    """The layout of tables with the same fields: after the offset to the vtable, the largest field first."""

    packed: struct.Struct  # without that distance
    order: list[int]  # of the fields
    places: list[int]  # of the fields, from the beginning of the table
    vtable: bytes
    alignment: int

    @staticmethod
    @cache
    def of(fields: tuple[tuple[int, str], ...]) -> _Shape:
        """Returns a writer for fields given by slot and kind."""
        letters = [_KINDS[kind][0] for _, kind in fields]
        sizes = [_KINDS[kind][1] for _, kind in fields]
        order = sorted(range(len(fields)), key=lambda field: -sizes[field])
        places, form, end = [0] * len(fields), "<", _DISTANCE.size
        for field in order:
            gap = -end % sizes[field]
            places[field] = end + gap
            form += "x" * gap + letters[field]
            end += gap + sizes[field]
        form += "x" * (-end % 4)
        slots = [0] * (1 + max((slot for slot, _ in fields), default=-1))
        for (slot, _), place in zip(fields, places, strict=True):
            slots[slot] = place
        vtable = struct.pack(f"<{len(slots) + 2}H", 4 + 2 * len(slots), end + -end % 4, *slots)
        return _Shape(struct.Struct(form), order, places, vtable, max([4, *sizes]))


class FlatbufferWriter:
    """Builds the tables, strings and short vectors of a flatbuffer, each before those that refer to it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # the last one comes first
        self._size = 0
        self._vtables: dict[bytes, int] = {}
        self._after: list[_Bytes] = []

    def string(self, text: str) -> int:
        data = text.encode()
        return self._vector(data + b"\0", len(data))

    def int32s(self, numbers: Iterable[int]) -> int:
        listed = list(numbers)
        return self._vector(struct.pack(f"<{len(listed)}i", *listed), len(listed))

    def float32s(self, numbers: np.ndarray) -> int:
        return self._vector(np.asarray(numbers, "<f4").tobytes(), len(numbers))

    def int64s(self, numbers: np.ndarray) -> int:
        return self._vector(np.asarray(numbers, "<i8").tobytes(), len(numbers), 8)

    def int8s(self, data: bytes) -> int:
        return self._vector(data, len(data))

    def offsets(self, offsets: Sequence[int]) -> int:
        """A vector of strings or tables."""
        count = len(offsets)
        first = self._place(4 * count, 4)
        distances = (first - 4 * index - offset for index, offset in enumerate(offsets))
        return self._vector(struct.pack(f"<{count}I", *distances), count)

    def table(self, *fields: Field) -> int:
        """Adds a table with these fields, also those with default values."""
        shape = _Shape.of(tuple((slot, kind) for slot, kind, _ in fields))
        place = self._place(_DISTANCE.size + shape.packed.size, shape.alignment)
        values: list[Any] = [
            place - where - value if kind == "offset" else value
            for (_, kind, value), where in zip(fields, shape.places, strict=True)
        ]
        vtable = self._vtables.setdefault(shape.vtable, place + len(shape.vtable))
        self._put(_DISTANCE.pack(vtable - place) + shape.packed.pack(*[values[i] for i in shape.order]))
        if vtable > place:
            self._put(shape.vtable)
        return place

    def table_of_bytes(self, slot: int, data: Array) -> int:
        """Adds a table with one field, a vector of ``data``'s bytes after the tables."""
        place = self.table((slot, "uint32", 0))
        self._after.append(_Bytes(data, place - 4, is_far=False))
        return place

    def table_of_place(self, place: int, size: int, data: Array) -> int:
        """Adds a table with the file offset of ``data`` in one slot, and the number of bytes in another."""
        fields = ((place, "uint64", 0), (size, "uint64", data.nbytes))
        made = self.table(*fields)
        hole = made - _Shape.of(tuple((slot, kind) for slot, kind, _ in fields)).places[0]
        self._after.append(_Bytes(data, hole, is_far=True))
        return made

    def _vector(self, data: bytes, count: int, alignment: int = 4) -> int:
        self._place(len(data), alignment)
        self._put(data)
        self._put(_LENGTH.pack(count))
        return self._size

    def _place(self, size: int, alignment: int) -> int:
        """Returns the aligned offset of an object of ``size`` bytes."""
        gap = -(self._size + size) % alignment
        if gap:
            self._put(bytes(gap))
        return self._size + size

    def _put(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)

    def _finished(self, root: int, identifier: bytes) -> bytearray:
        self._place(_LENGTH.size + len(identifier), _ALIGNMENT)
        total = self._size + _LENGTH.size + len(identifier)
        self._put(identifier)
        self._put(_LENGTH.pack(total - root))
        return bytearray().join(reversed(self._parts))

    def write(self, root: int, identifier: bytes, file: BinaryIO) -> None:
        """Writes the whole file, making a few rows contiguous at a time.

        Raises: WriteError TM5002 before the first byte if it would be too large for a flatbuffer.
        """
        skeleton = self._finished(root, identifier)
        order = sorted(self._after, key=lambda each: each.is_far)
        starts = self._layout(len(skeleton), order)
        for each, start in zip(order, starts, strict=True):
            position = len(skeleton) - each.hole
            if each.is_far:
                _PLACE.pack_into(skeleton, position, start)
            else:
                _LENGTH.pack_into(skeleton, position, start - position)
        last = order[-1] if order else None
        reserve(file, len(skeleton) if last is None else starts[-1] + last.head + last.data.nbytes)
        file.write(skeleton)
        end, elements = len(skeleton), ElementWriter(file)
        for each, start in zip(order, starts, strict=True):
            file.write(bytes(start - end) + (b"" if each.is_far else _LENGTH.pack(each.data.nbytes)))
            elements.write(each.data)
            end = start + each.head + each.data.nbytes

    def _layout(self, end: int, order: Sequence[_Bytes]) -> list[int]:
        """Returns the offset of each object, with its length; data is aligned to 16 bytes."""
        starts = []
        for each in order:
            start = end + -(end + each.head) % _ALIGNMENT
            starts.append(start)
            end = start + each.head + each.data.nbytes
            if end >= _SIZE_LIMIT and not each.is_far:
                raise WriteError(
                    "TM5002",
                    f"the flatbuffer would be {end / 2**30:.1f} GiB, but the limit is 2 GiB",
                    notes=[("help", "split the model")],
                )
        return starts
