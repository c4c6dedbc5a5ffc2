"""A flatbuffer whose large byte vectors are laid out behind it and streamed.

A flatbuffer points only forward, from a field to its vector, by the distance between them. So the
tables can be built first, with holes for those distances, and the vectors follow them in the file:
each a uint32 length, little-endian, and its bytes, which begin at a multiple of 16. A reader sees a
flatbuffer like any other.

A distance has 32 bits. What lies further off is said in another way: the place of bytes in the file and
their number, in two fields of 64 bits (TFLite's Buffer has them). Such bytes follow the flatbuffer, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import flatbuffers
import numpy as np

from ..errors import WriteError

# Flatbuffers' verifier wants less than this.
_SIZE_LIMIT = 2**31 - 1

_ALIGNMENT = 16
_LENGTH = struct.Struct("<I")
_PLACE = struct.Struct("<Q")

# Slot, kind ("int8", "bool", ..., or "offset" for a string, vector or table), value.
Field = tuple[int, str, float]


@dataclass(frozen=True, slots=True)
class _Bytes:
    """What follows the skeleton, and the hole for its place, as a distance from the skeleton's end."""

    data: np.ndarray
    hole: int
    is_far: bool

    @property
    def head(self) -> int:
        """The bytes of the length in front of the data."""
        return 0 if self.is_far else _LENGTH.size


class Skeleton:
    """The tables, strings and short vectors of a flatbuffer, each made before what refers to it."""

    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(1024)
        self._prepend = {
            "bool": self._builder.PrependBoolSlot,
            "int8": self._builder.PrependInt8Slot,
            "uint8": self._builder.PrependUint8Slot,
            "int32": self._builder.PrependInt32Slot,
            "uint32": self._builder.PrependUint32Slot,
            "uint64": self._builder.PrependUint64Slot,
            "float32": self._builder.PrependFloat32Slot,
        }
        self._behind: list[_Bytes] = []

    def string(self, text: str) -> int:
        return int(self._builder.CreateString(text))

    def int32s(self, numbers: Iterable[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.array(list(numbers), np.int32)))

    def float32s(self, numbers: np.ndarray) -> int:
        return int(self._builder.CreateNumpyVector(np.asarray(numbers, np.float32)))

    def int64s(self, numbers: np.ndarray) -> int:
        return int(self._builder.CreateNumpyVector(np.asarray(numbers, np.int64)))

    def int8s(self, data: bytes) -> int:
        return int(self._builder.CreateByteVector(data))

    def offsets(self, offsets: Sequence[int]) -> int:
        """A vector of strings or tables."""
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def table(self, *fields: Field) -> int:
        """A table with these fields, written whether or not they hold their defaults."""
        self._builder.StartObject(1 + max((slot for slot, _, _ in fields), default=-1))
        for slot, kind, value in fields:
            if kind == "offset":
                self._builder.PrependUOffsetTRelativeSlot(slot, value, 0)
            else:
                self._prepend[kind](slot, value, None)
        return int(self._builder.EndObject())

    def table_of_bytes(self, slot: int, data: np.ndarray) -> int:
        """A table whose one field is a vector of ``data``'s bytes, laid out behind the skeleton."""
        self._builder.StartObject(slot + 1)
        self._builder.PrependUint32Slot(slot, 1, 0)
        self._behind.append(_Bytes(data, int(self._builder.Offset()), is_far=False))
        return int(self._builder.EndObject())

    def table_of_place(self, place: int, size: int, data: np.ndarray) -> int:
        """A table with the place of ``data`` in the file in one slot, and the number of bytes in another."""
        self._builder.StartObject(1 + max(place, size))
        self._builder.PrependUint64Slot(size, data.nbytes, None)
        self._builder.PrependUint64Slot(place, 0, None)
        self._behind.append(_Bytes(data, int(self._builder.Offset()), is_far=True))
        return int(self._builder.EndObject())

    def write(self, root: int, identifier: bytes, file: BinaryIO) -> None:
        """Write the whole file, making one vector contiguous at a time.

        Raises: WriteError TM5002 before the first byte if it would be too large for a flatbuffer.
        """
        self._builder.Finish(root, identifier)
        skeleton = self._builder.Output()
        order = sorted(self._behind, key=lambda each: each.is_far)
        starts = self._layout(len(skeleton), order)
        for each, start in zip(order, starts, strict=True):
            position = len(skeleton) - each.hole
            if each.is_far:
                _PLACE.pack_into(skeleton, position, start)
            else:
                _LENGTH.pack_into(skeleton, position, start - position)
        file.write(skeleton)
        end = len(skeleton)
        for each, start in zip(order, starts, strict=True):
            file.write(bytes(start - end) + (b"" if each.is_far else _LENGTH.pack(each.data.nbytes)))
            file.write(_contiguous_bytes(each.data))
            end = start + each.head + each.data.nbytes

    def _layout(self, end: int, order: Sequence[_Bytes]) -> list[int]:
        """Where each begins, with its length where it has one; the data begins at a multiple of 16."""
        starts = []
        for each in order:
            start = end + -(end + each.head) % _ALIGNMENT
            starts.append(start)
            end = start + each.head + each.data.nbytes
            if end >= _SIZE_LIMIT and not each.is_far:
                raise WriteError(
                    "TM5002",
                    f"the flatbuffer would take {end / 2**30:.1f} GiB, and can have 2 GiB",
                    notes=[("help", "split the model")],
                )
        return starts


def _contiguous_bytes(data: np.ndarray) -> memoryview:
    little_endian = data.dtype.newbyteorder("<") if data.dtype.byteorder == ">" else data.dtype
    flat = np.ascontiguousarray(data, little_endian).reshape(-1)
    return flat.view(np.uint8).data
