"""Reads the weights of a caffemodel: a serialized NetParameter, of which only names and blobs are parsed.

The arrays are parts of the mapped file; nothing is copied but what is stored in another form than float32.
Source of the format: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

MOST_FIELDS = 1 << 20  # of all messages: a file has a dozen for each layer
MOST_AXES = 32
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
_FIRST_RUN = 64
# (field of NetParameter, of its layer: name, blobs), in the formats of before 2015 and of today
_LAYERS = {2: (4, 6), 100: (1, 7)}
_OLD_EXTENTS = (1, 2, 3, 4)  # num, channels, height and width of BlobProto
_DATA, _SHAPE, _DOUBLES, _RAW_TYPE, _RAW = 5, 7, 8, 10, 12
# of OpenCV and NVIDIA
_RAW_TYPES: dict[int, np.dtype] = {0: np.dtype("<f8"), 1: np.dtype("<f4"), 2: np.dtype("<f2")}

Fault = Callable[[str], Exception]


class _Field(NamedTuple):
    """A field: an integer for VARINT, else the bytes ``start`` to ``end`` of the file."""

    number: int
    wire: int
    value: int
    start: int
    end: int


def blobs_of(data: memoryview, fault: Fault) -> dict[str, list[np.ndarray]]:
    """Returns the blobs of each layer, float32; ``fault`` makes the error for a damaged file."""
    return _Reader(data, fault).blobs()


class _Reader:
    def __init__(self, data: memoryview, fault: Fault) -> None:
        self.data = data
        self.fault = fault
        self.fields_left = MOST_FIELDS

    def blobs(self) -> dict[str, list[np.ndarray]]:
        found: dict[str, list[np.ndarray]] = {}
        for field in self.fields(0, len(self.data)):
            if field.number not in _LAYERS or field.wire != BYTES:
                continue
            named, stored = _LAYERS[field.number]
            name, blobs = "", []
            for inner in self.fields(field.start, field.end):
                if inner.number == named and inner.wire == BYTES:
                    name = bytes(self.data[inner.start : inner.end]).decode("utf-8", "replace")
                elif inner.number == stored and inner.wire == BYTES:
                    blobs.append(self.blob(inner.start, inner.end))
            if blobs:
                found[name] = blobs
        return found

    def blob(self, start: int, end: int) -> np.ndarray:
        """Returns the array of a BlobProto; one without a shape has the four extents of old files."""
        extents: list[int] = []
        old = dict.fromkeys(_OLD_EXTENTS, 0)
        parts: list[np.ndarray] = []
        has_shape, raw_type = False, _RAW_TYPES[1]
        raw: memoryview | None = None
        for field in self.fields(start, end):
            if field.number in old and field.wire == VARINT:
                old[field.number] = field.value
            elif field.number == _SHAPE and field.wire == BYTES:
                has_shape, extents = True, self.extents(field)
            elif field.number in (_DATA, _DOUBLES):
                parts.append(self.floats(field))
            elif field.number == _RAW_TYPE:
                if field.value not in _RAW_TYPES:
                    raise self.fault(f"a blob has the raw type {field.value}")
                raw_type = _RAW_TYPES[field.value]
            elif field.number == _RAW and field.wire == BYTES:
                raw = self.data[field.start : field.end]
        if raw is not None:
            parts = [self.array(raw, raw_type)]
        shape = extents if has_shape else list(old.values())
        array = parts[0] if len(parts) == 1 else np.concatenate(parts or [np.zeros(0, np.float32)])
        if len(shape) > MOST_AXES or min(shape, default=1) < 0 or math.prod(shape) != array.size:
            raise self.fault(f"a blob of the shape {shape[:MOST_AXES]} has {array.size} elements")
        return array.astype(np.float32, copy=False).reshape(shape)

    def extents(self, shape: _Field) -> list[int]:
        found: list[int] = []
        for field in self.fields(shape.start, shape.end):
            if field.number != 1:
                continue
            if field.wire == VARINT:
                found.append(field.value)
                continue
            at = field.start
            while at < field.end and len(found) <= MOST_AXES:
                value, at = self.varint(at, field.end)
                found.append(value)
        return [value - (1 << 64) if value >= 1 << 63 else value for value in found]

    def floats(self, field: _Field) -> np.ndarray:
        dtype = np.dtype("<f4" if field.number == _DATA else "<f8")
        if field.wire == BYTES:
            return self.array(self.data[field.start : field.end], dtype)
        # elements that are stored one by one, each behind its tag; ``fields`` joins them
        width = 1 + dtype.itemsize
        if field.wire not in (FIXED32, FIXED64) or (field.end - field.start) % width:
            raise self.fault("the elements of a blob have another type than float")
        form = np.dtype([("tag", "u1"), ("value", dtype)])
        return np.frombuffer(self.data[field.start : field.end], form)["value"]

    def array(self, content: memoryview, dtype: np.dtype) -> np.ndarray:
        if len(content) % dtype.itemsize:
            raise self.fault(f"a blob of {dtype} has {len(content)} bytes")
        return np.frombuffer(content, dtype)

    # ---- the encoding of protobuf

    def fields(self, at: int, end: int) -> Iterator[_Field]:
        """Yields the fields of a message; elements that are not packed come as one field."""
        while at < end:
            self.fields_left -= 1
            if self.fields_left < 0:
                raise self.fault(f"it has more than {MOST_FIELDS} fields")
            start = at
            tag, at = self.varint(at, end)
            number, wire = tag >> 3, tag & 7
            value = 0
            if wire == VARINT:
                value, at = self.varint(at, end)
            elif wire in (FIXED32, FIXED64):
                length = 4 if wire == FIXED32 else 8
                if at - start == 1:
                    length = self.run(start, end, 1 + length) - 1
                at += length
            elif wire == BYTES:
                length, at = self.varint(at, end)
                start, at = at, at + length
            else:
                raise self.fault(f"a field at {start} has the wire type {wire}")
            if at > end:
                raise self.fault(f"a field at {start} ends after its message")
            yield _Field(number, wire, value, start, at)

    def run(self, start: int, end: int, width: int) -> int:
        """Returns the bytes of the elements from ``start`` on that have the same tag of one byte."""
        first, count, step = self.data[start], 0, _FIRST_RUN
        while True:
            chunk = self.data[start + count * width : min(start + (count + step) * width, end)]
            size = len(chunk) // width
            tags = np.frombuffer(chunk, np.uint8, size * width)[::width]
            same = tags == first
            if not size or not same.all():
                return max(count + (int(same.argmin()) if size else 0), 1) * width
            count, step = count + size, 2 * step

    def varint(self, at: int, end: int) -> tuple[int, int]:
        value, shift = 0, 0
        while at < end and shift < 70:
            byte = self.data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value & (1 << 64) - 1, at
        raise self.fault(f"a number at {at} has no end")
