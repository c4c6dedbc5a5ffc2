"""The bytes of constants: those of a plain copy, whatever the strides and dtypes, and of products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tmconvert.ir.lazy_constants import Array, Scaled, scaled
from tmconvert.output import element_writer
from tmconvert.output.element_writer import ElementWriter

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


def pieces(data: Array, dtype: np.dtype | None = None) -> list[bytes]:
    class File:
        def write(self, piece: memoryview) -> None:
            found.append(bytes(piece))

    found: list[bytes] = []
    ElementWriter(File()).write(data, dtype)
    return found


def written(data: Array, dtype: np.dtype | None = None) -> bytes:
    return b"".join(pieces(data, dtype))


def little_endian(data: np.ndarray) -> bytes:
    plain = np.array(data, order="C")
    return (plain.byteswap() if data.dtype.byteorder == ">" else plain).tobytes()


@pytest.mark.parametrize("chunk", [28, 1 << 18])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_in_c_order(dtype: Any, view: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_writer, "_ROWS_BYTES", chunk)
    data = VIEWS[view](BASE.astype(dtype))
    assert written(data) == little_endian(data)
    if view != "none" and data.dtype.kind != "c":
        as_float32 = np.array(data).astype("<f4")
        assert written(data, np.dtype("f4")) == as_float32.tobytes()


def test_a_large_transposed_array() -> None:
    data = np.arange(900 * 700, dtype=np.int32).reshape(900, 700).T
    assert written(data) == little_endian(data)
    assert max(map(len, pieces(data))) <= 1 << 18


def test_one_large_row_is_copied_in_pieces() -> None:
    data = np.arange(2 << 20, dtype=np.float32).reshape(1, 1, 1 << 10, 2 << 10).swapaxes(2, 3)
    assert written(data) == little_endian(data)
    assert max(map(len, pieces(data))) <= 1 << 18


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)], ids=str)
def test_a_product_is_computed_in_pieces_and_not_kept(order: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    weight = rng.normal(size=(48, 96, 9, 11)).astype(np.float32)
    factor = rng.uniform(0.1, 3, size=(48, 1, 1, 1))
    product = scaled(weight, factor)
    assert isinstance(product, Scaled)
    moved = product.viewed(lambda each: each.transpose(order))
    expected = (weight * factor).astype(np.float32).transpose(order)
    assert written(moved) == little_endian(expected)
    assert max(map(len, pieces(moved))) <= 1 << 18
    assert product._computed is None
    assert isinstance(moved, Scaled) and moved._computed is None
