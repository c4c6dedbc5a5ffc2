"""A flatbuffer whose large byte vectors are laid out behind it and streamed.

A flatbuffer points only forward, from a field to its vector, by the distance between them. So the
tables can be built first, with holes for those distances, and the vectors follow them in the file:
each a uint32 length, little-endian, and its bytes, which begin at a multiple of 16. A reader sees a
flatbuffer like any other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import flatbuffers
import numpy as np

from ..errors import WriteError

# Flatbuffers' verifier wants less than this.
_SIZE_LIMIT = 2**31 - 1

_ALIGNMENT = 16
_LENGTH = struct.Struct("<I")

# Slot, kind ("int8", "bool", ..., or "offset" for a string, vector or table), value.
Field = tuple[int, str, float]


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
            "float32": self._builder.PrependFloat32Slot,
        }
        self._vectors: list[np.ndarray] = []
        self._holes: list[int] = []  # distances from the end of the skeleton

    def string(self, text: str) -> int:
        return int(self._builder.CreateString(text))

    def int32s(self, numbers: Iterable[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.array(list(numbers), np.int32)))

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
        self._vectors.append(data)
        self._builder.StartObject(slot + 1)
        self._builder.PrependUint32Slot(slot, len(self._vectors), 0)
        self._holes.append(int(self._builder.Offset()))
        return int(self._builder.EndObject())

    def write(self, root: int, identifier: bytes, file: BinaryIO) -> None:
        """Write the whole file, making one vector contiguous at a time.

        Raises: WriteError TM5002 before the first byte if it would be too large for a flatbuffer.
        """
        self._builder.Finish(root, identifier)
        skeleton = self._builder.Output()
        starts, size = self._layout(len(skeleton))
        if size >= _SIZE_LIMIT:
            raise WriteError(
                "TM5002",
                f"the model takes {size / 2**30:.1f} GiB, and a TFLite file can hold 2 GiB",
                notes=[("help", "store the weights as float16 or int8, or split the model")],
            )
        for hole, start in zip(self._holes, starts, strict=True):
            position = len(skeleton) - hole
            _LENGTH.pack_into(skeleton, position, start - position)
        file.write(skeleton)
        end = len(skeleton)
        for data, start in zip(self._vectors, starts, strict=True):
            file.write(bytes(start - end) + _LENGTH.pack(data.nbytes))
            file.write(_contiguous_bytes(data))
            end = start + _LENGTH.size + data.nbytes

    def _layout(self, end: int) -> tuple[list[int], int]:
        """Where each vector's length stands, and the size of the file."""
        starts = []
        for data in self._vectors:
            start = end + -(end + _LENGTH.size) % _ALIGNMENT
            starts.append(start)
            end = start + _LENGTH.size + data.nbytes
        return starts, end


def _contiguous_bytes(data: np.ndarray) -> memoryview:
    little_endian = data.dtype.newbyteorder("<") if data.dtype.byteorder == ">" else data.dtype
    flat = np.ascontiguousarray(data, little_endian).reshape(-1)
    return flat.view(np.uint8).data
