"""The types of tensors in GGUF files that are integers in blocks: one row of a table a type.

Source: the documentation of GGML's types, and the package gguf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tmconvert.ir.fake_quant import IntegerMatrix

# the smallest part of an offset that a scale may be where the file's is 0
_NOTHING = np.float32(2.0**-22)


class BlockType(NamedTuple):
    """A block of ``size`` elements in ``bytes``, with scales for ``group`` elements.

    ``read`` returns integers [blocks, elements], scales and zero points [blocks, groups] of blocks
    [blocks, bytes].
    """

    size: int
    bytes: int
    group: int
    read: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray | None]]


def _half(blocks: np.ndarray, place: int) -> np.ndarray:
    """Returns the float16 numbers at a place of all blocks, in float32."""
    return np.ascontiguousarray(blocks[:, place : place + 2]).view(np.float16).astype(np.float32)


def _halves(array: np.ndarray) -> np.ndarray:
    """Returns four-bit integers: the lower halves of all bytes of a row, then the upper ones."""
    return np.concatenate([array & 0x0F, array >> 4], axis=-1)


def _fraction(offset: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns scales and zero points for ``integer * scale - offset``."""
    scale = np.where(scale == 0, offset * _NOTHING, scale).astype(np.float32)
    return scale, np.divide(offset, scale, out=np.zeros_like(scale), where=scale != 0)


def _q4_0(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    values = _halves(blocks[:, 2:])
    return values, _half(blocks, 0), np.full((len(blocks), 1), 8, np.uint8)


def _q4_1(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    return _halves(blocks[:, 4:]), *_fraction(-_half(blocks, 2), _half(blocks, 0))


def _q8_0(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8), _half(blocks, 0), None


def _q4_k(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Eight groups of 32; their scales and offsets have six bits, in twelve bytes."""
    first, second, third = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=1)
    offsets = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=1)
    values = _halves(blocks[:, 16:].reshape(len(blocks), 4, 32)).reshape(len(blocks), 256)
    return values, *_fraction(_half(blocks, 2) * offsets, _half(blocks, 0) * scales)


def _q6_k(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Sixteen groups of 16; four bits of each integer, then two more of four integers in a byte."""
    count = len(blocks)
    low = _halves(blocks[:, :128].reshape(count, 2, 64)).reshape(count, 2, 4, 32)
    high = blocks[:, 128:192].reshape(count, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    values = (low | high << 4).reshape(count, 256)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8) * _half(blocks, 208)
    return values, scales.astype(np.float32), np.full((count, 16), 32, np.uint8)


BLOCK_TYPES: Mapping[str, BlockType] = {
    "Q4_0": BlockType(32, 18, 32, _q4_0),
    "Q4_1": BlockType(32, 20, 32, _q4_1),
    "Q8_0": BlockType(32, 34, 32, _q8_0),
    "Q4_K": BlockType(256, 144, 32, _q4_k),
    "Q6_K": BlockType(256, 210, 16, _q6_k),
}


def matrix_of(name: str, data: np.ndarray) -> IntegerMatrix | None:
    """Returns the integers of a tensor of type ``name``, whose bytes are ``data``, row by row.

    >>> matrix_of("Q8_0", np.zeros((3, 68), np.uint8)).values.shape
    (3, 64)
    """
    kind = BLOCK_TYPES.get(name)
    if kind is None or data.ndim != 2 or data.shape[1] % kind.bytes:
        return None
    values, scale, zero = kind.read(np.ascontiguousarray(data).reshape(-1, kind.bytes))
    rows = len(data)
    zeros = None if zero is None else zero.reshape(rows, -1)
    return IntegerMatrix(np.ascontiguousarray(values).reshape(rows, -1), scale.reshape(rows, -1), zeros)
