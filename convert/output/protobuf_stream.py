"""Writes protobuf messages that consist mostly of arrays, without copying them.

Wire format: a field is a tag (``number << 3 | wire type``) and a value. Strings, messages and packed
numbers have wire type 2: a length in bytes, then the bytes. Tags and lengths are varints: 7 bits a
byte, the lowest first, the top bit set on all bytes but the last. Numbers in arrays are little-endian.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from tmconvert.ir.lazy_constants import Array
from tmconvert.output.element_writer import ElementWriter

# Readers count bytes in a signed 32-bit integer.
LARGEST_MESSAGE = 2**31 - 1

_LENGTH_DELIMITED = 2


class StreamedMessage:
    """One message: encoded fields in order, and arrays that are encoded when they are written.

    ``length`` is known before anything is written. Memory: references to the arrays, no copies; an
    array that is not contiguous, or of another dtype, passes through a small buffer.
    """

    def __init__(self) -> None:
        self.length = 0
        self._parts: list[bytes | tuple[Array, np.dtype]] = []

    def append(self, encoded: bytes) -> None:
        """Appends encoded fields."""
        self._parts.append(encoded)
        self.length += len(encoded)

    def append_array(self, field: int, data: Array, dtype: np.dtype) -> None:
        """Appends the elements of ``data`` in C order, as ``dtype``, as one bytes or packed field."""
        length = data.size * dtype.itemsize
        self.append(_header(field, length))
        self._parts.append((data, dtype))
        self.length += length

    def append_message(self, field: int, message: StreamedMessage) -> None:
        """Appends a sub-message."""
        self.append(_header(field, message.length))
        self._parts += message._parts
        self.length += message.length

    def write(self, file: BinaryIO) -> None:
        """Writes the message's fields, ``length`` bytes in total."""
        elements = ElementWriter(file)
        for part in self._parts:
            if isinstance(part, bytes):
                file.write(part)
            else:
                elements.write(*part)


def encoded_field(number: int, content: bytes) -> bytes:
    """Encodes a string, a bytes field or a whole sub-message."""
    return _header(number, len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _header(field: int, length: int) -> bytes:
    return _varint(field << 3 | _LENGTH_DELIMITED) + _varint(length)
