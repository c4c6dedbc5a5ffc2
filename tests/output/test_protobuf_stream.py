"""Protobuf messages with arrays inside: tags, lengths, nesting."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tmconvert.output.protobuf_stream import StreamedMessage


def written(data: np.ndarray, dtype: np.dtype) -> bytes:
    message = StreamedMessage()
    message.append_array(3, data, dtype)
    file = io.BytesIO()
    message.write(file)
    assert len(file.getvalue()) == message.length
    return file.getvalue()


@pytest.mark.parametrize(
    ("size", "header"),
    # tag 0x1a = 3 * 8 + 2, then the length in varint form
    [(0, b"\x1a\x00"), (127, b"\x1a\x7f"), (128, b"\x1a\x80\x01"), (300, b"\x1a\xac\x02")],
)
def test_header(size: int, header: bytes) -> None:
    data = np.ones(size, np.uint8)
    assert written(data, data.dtype) == header + b"\x01" * size


def test_large_field_numbers_and_nesting() -> None:
    inner, outer = StreamedMessage(), StreamedMessage()
    inner.append(b"\x08\x01")
    inner.append_array(106, np.array([2, 1], "i1")[::-1], np.dtype("i1"))
    outer.append_message(7, inner)
    outer.append(b"\x10\x05")
    file = io.BytesIO()
    outer.write(file)
    assert file.getvalue() == b"\x3a\x07\x08\x01\xd2\x06\x02\x01\x02\x10\x05"
