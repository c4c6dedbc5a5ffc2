"""The content of an ONNX file without its weights, which stay in the mapped file.

A protobuf message is parsed whole, with a copy of each field, and Python copies the bytes of a field again.
So the weights of the graph are cut out first: each becomes a tensor with external data, in the model's own
file. Sources: Protocol Buffers' page "Encoding", and onnx.proto for the numbers of the fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

OWN_FILE = "\0"  # the location of external data in the file of the model; no file has this name
SMALLEST = 4096  # bytes of weights that are cut out
_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # wire types
_MOST_DIGITS = 10  # of a varint


class _Field(NamedTuple):
    """A field in a message: where it begins, where its content does, and where it ends."""

    number: int
    kind: int
    start: int
    content: int
    end: int


def without_weights(data: memoryview) -> bytes:
    """Returns a serialized ModelProto without the raw data of large initializers of its graph.

    What is not a message of this form is returned as it is, for the parser to judge.
    """
    if len(data) >= SMALLEST:
        try:
            return _cut(data)
        except (IndexError, ValueError):
            pass
    return bytes(data)


def _cut(data: memoryview) -> bytes:
    (graph,) = (field for field in _fields(data, 0, len(data)) if field.number == _GRAPH)
    if graph.kind != _BYTES:
        raise ValueError("the graph is not a message")
    pieces: list[bytes | memoryview] = []
    kept = graph.content
    for field in _fields(data, graph.content, graph.end):
        if field.number == _INITIALIZER and field.end - field.content >= SMALLEST:
            tensor = _in_own_file(data, field)
            if tensor is not None:
                pieces += [data[kept : field.start], _message(_INITIALIZER, tensor)]
                kept = field.end
    pieces.append(data[kept : graph.end])
    return b"".join((data[: graph.start], _message(_GRAPH, b"".join(pieces)), data[graph.end :]))


def _in_own_file(data: memoryview, tensor: _Field) -> bytes | None:
    """Returns a TensorProto with external data; None without raw data, or with external data already."""
    fields = list(_fields(data, tensor.content, tensor.end))
    raw = [field for field in fields if field.number == _RAW_DATA]
    is_external = any(field.number in (_EXTERNAL_DATA, _DATA_LOCATION) for field in fields)
    if len(raw) != 1 or raw[0].kind != _BYTES or is_external:
        return None
    _, _, start, content, end = raw[0]
    entries = {"location": OWN_FILE, "offset": str(content), "length": str(end - content)}
    return b"".join(
        (
            data[tensor.content : start],
            data[end : tensor.end],
            *(
                _message(_EXTERNAL_DATA, _message(1, key.encode()) + _message(2, value.encode()))
                for key, value in entries.items()
            ),
            bytes((_DATA_LOCATION << 3 | _VARINT, 1)),
        )
    )


def _fields(data: memoryview, start: int, end: int) -> Iterator[_Field]:
    """Yields the fields of a message. Raises IndexError or ValueError for other bytes."""
    while start < end:
        tag, content = _varint(data, start)
        kind = tag & 7
        if kind == _VARINT:
            stop = _varint(data, content)[1]
        elif kind == _BYTES:
            size, content = _varint(data, content)
            stop = content + size
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            stop = content + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError(f"{kind} is not a wire type")
        if stop > end:
            raise ValueError("a field is longer than its message")
        yield _Field(tag >> 3, kind, start, content, stop)
        start = stop


def _varint(data: memoryview, start: int) -> tuple[int, int]:
    """Returns the number at ``start`` and where it ends."""
    number = 0
    for digit in range(_MOST_DIGITS):
        byte = data[start + digit]
        number |= (byte & 127) << 7 * digit
        if byte < 128:
            return number, start + digit + 1
    raise ValueError("a number has too many digits")


def _message(number: int, content: bytes) -> bytes:
    """Returns a field with a message, a text or bytes as its content."""
    digits, size = bytearray(), len(content)
    while size > 127:
        digits.append(size & 127 | 128)
        size >>= 7
    return bytes((number << 3 | _BYTES, *digits, size)) + content
