"""Streaming writer of ZIP archives with stored members: no copies, no dates, deterministic bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from tmconvert.formats.tm.format import (
    ALIGNMENT,
    CENTRAL_HEADER,
    CENTRAL_MARK,
    END,
    END_64,
    END_64_MARK,
    END_MARK,
    LOCAL_HEADER,
    LOCAL_MARK,
    LOCATOR_64,
    LOCATOR_64_MARK,
    PADDING_FIELD,
    WIDE,
    WIDE_FIELD,
)
from tmconvert.output.element_writer import Sink

_NO_DATE = (0, 0x21)  # 1980-01-01, the earliest that the format can say
_FIELD_HEAD = 4


class StoredZip:
    """An archive on ``file``, which must be seekable and at its start."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._directory: list[bytes] = []
        self._position = 0

    def add(self, name: str, size: int, write: Callable[[Sink], None]) -> None:
        """Adds a member of ``size`` bytes by ``write``. The data begins at a multiple of ``ALIGNMENT``."""
        offset = self._position
        wide = struct.pack("<2H2Q", WIDE_FIELD, 16, size, size) if size >= WIDE else b""
        extra = wide + _padding(offset + LOCAL_HEADER.size + len(name) + len(wide))
        self._write(LOCAL_HEADER.pack(LOCAL_MARK, *_fields(size, 0), len(name), len(extra)))
        self._write(name.encode("ascii") + extra)
        member = _Member(self._file)
        write(member)
        if member.size != size:
            raise ValueError(f"{name} has {member.size} bytes instead of {size}")
        self._position += size
        self._file.seek(offset)
        fields = _fields(size, member.checksum)
        self._file.write(LOCAL_HEADER.pack(LOCAL_MARK, *fields, len(name), len(extra)))
        self._file.seek(self._position)
        entry = CENTRAL_HEADER.pack(
            CENTRAL_MARK, fields[0], *fields, len(name), len(wide), 0, 0, 0, 0, offset
        )
        self._directory.append(entry + name.encode("ascii") + wide)

    def finish(self) -> None:
        """Writes the directory of the members."""
        start, count = self._position, len(self._directory)
        directory = b"".join(self._directory)
        self._write(directory)
        if start >= WIDE:
            end = self._position
            self._write(
                END_64.pack(END_64_MARK, 44, 45, 45, 0, 0, count, count, len(directory), start)
                + LOCATOR_64.pack(LOCATOR_64_MARK, 0, end, 1)
            )
        self._write(END.pack(END_MARK, 0, 0, count, count, len(directory), min(start, WIDE), 0))

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._position += len(piece)


class _Member:
    """Forwards bytes, counting them and updating the checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self.checksum = 0

    def write(self, piece: Any, /) -> None:
        self._file.write(piece)
        self.size += memoryview(piece).nbytes
        self.checksum = zlib.crc32(piece, self.checksum)


def _fields(size: int, check: int) -> list[int]:
    """Returns version needed, flags, method, time, date, checksum and both sizes."""
    narrow = min(size, WIDE)
    return [45 if size >= WIDE else 20, 0, 0, *_NO_DATE, check, narrow, narrow]


def _padding(position: int) -> bytes:
    """Returns an extra field that aligns ``position`` to ``ALIGNMENT``; empty if it is aligned."""
    if position % ALIGNMENT == 0:
        return b""
    length = -(position + _FIELD_HEAD) % ALIGNMENT
    return struct.pack("<2H", PADDING_FIELD, length) + bytes(length)
