"""Streamed arrays: the bytes of a plain copy, whatever the strides and dtypes."""

from __future__ import annotations

import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tmconvert.serialize import protobuf_stream
from tmconvert.serialize.protobuf_stream import StreamedMessage

BASE = np.random.default_rng(1).uniform(0, 9, size=(2, 3, 5, 7))
VIEWS = {
    "plain": lambda data: data,
    "transposed": lambda data: data.T,
    "permuted": lambda data: data.transpose(2, 0, 3, 1),
    "strided": lambda data: data[:, ::2],
    "reversed": lambda data: data[::-1, :, ::-1],
    "broadcast": lambda data: np.broadcast_to(data[:1], (11, 3, 5, 7)),
    "read-only": lambda data: np.frombuffer(data.tobytes(), data.dtype),
    "one": lambda data: data[1, 2, 4, 6:].reshape(()),
    "none": lambda data: data[:, :0].T,
}
DTYPES: list[Any] = ["f4", "f2", "i1", "u8", "?", "c8", ">f4", ">i8", ml_dtypes.bfloat16]


def written(data: np.ndarray, dtype: np.dtype) -> bytes:
    message = StreamedMessage()
    message.append_array(3, data, dtype)
    file = io.BytesIO()
    message.write(file)
    assert len(file.getvalue()) == message.length
    return file.getvalue()


def little_endian(data: np.ndarray) -> bytes:
    plain = np.array(data, order="C")
    return (plain.byteswap() if data.dtype.byteorder == ">" else plain).tobytes()


@pytest.mark.parametrize("chunk", [7, 1 << 18])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_in_c_order(dtype: Any, view: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_stream, "_CHUNK_ELEMENTS", chunk)
    data = VIEWS[view](BASE.astype(dtype))
    encoded = written(data, data.dtype)
    assert encoded.endswith(little_endian(data))
    if view != "none" and data.dtype.kind != "c":
        as_float32 = np.array(data).astype("<f4")
        assert written(data, np.dtype("f4")).endswith(as_float32.tobytes())


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


def test_a_large_transposed_array() -> None:
    data = np.arange(900 * 700, dtype=np.int32).reshape(900, 700).T
    assert written(data, data.dtype).endswith(little_endian(data))
