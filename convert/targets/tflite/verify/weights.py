"""Compares the weights of a TFLite file in fewer bits with those of its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import Value
from tmconvert.targets.tflite.compress_weights import rows_of
from tmconvert.targets.tflite.quantize_weights import BITS, restored, scale_of
from tmconvert.targets.tflite.reader import tflite_constants

_HALF = np.float32(0.5005)  # of a step, with the roundings of float32


def check_weights(path: Path, stored: Sequence[tuple[Value, Value]], signature: str = "") -> None:
    """Raises VerificationError TM4001 where the file at ``path``, or a signature of it, does not have the
    weights of ``stored``.
    """
    constants = tflite_constants(path, signature)
    for plain, kept in stored:
        assert plain.data is not None
        found = list(constants.get(kept.name, []))
        if kept.quantization is not None and not kept.quantization.block_size:
            tables = [constants.get(each.name, []) for each in rows_of(kept)]
            for rows, scale in zip(*tables, strict=False):
                quantization = kept.quantization._replace(scale=restored(scale).reshape(-1))
                found.append(replace(rows, quantization=quantization))
        if not found:
            raise VerificationError("TM4001", f"the file has no weight {kept.name}, which its source has")
        if not all(_is_near(plain.data, each, kept) for each in found):
            message = (
                f"the weight {kept.name} of the file differs from that of its source by more than half a step"
            )
            raise VerificationError("TM4001", message)


def _is_near(plain: np.ndarray, found: Value, kept: Value) -> bool:
    """Whether a weight of the file is within half a step of ``plain``, or at the end of its range where that
    is beyond it; and whether the largest element needs such steps, which zeros have of any size.
    """
    if found.shape != plain.shape or (found.quantization is None) != (kept.quantization is None):
        return False
    real = restored(found)
    error = np.abs(real - plain)
    if found.quantization is None:
        half = np.abs(plain) * np.float32(2.0**-11 * 1.001) + np.float32(2.0**-25)
        return bool(np.all(error <= half))
    assert found.data is not None
    scale, most = scale_of(found), (1 << (BITS[kept.dtype.name] - 1)) - 1
    largest = _largest(plain, found)
    bounds = np.where(largest == 0, np.inf, np.float32(1.2 / most) * largest + np.float32(2.0**-24))
    is_beyond = (found.data >= most) & (plain > real) | (found.data <= -most) & (plain < real)
    return bool(np.all(scale <= bounds) and np.all((error <= _HALF * scale) | is_beyond))


def _largest(plain: np.ndarray, found: Value) -> np.ndarray:
    """Returns the largest magnitude of the elements that share a scale, to compare with ``scale_of``."""
    known = found.quantization
    assert known is not None
    if known.block_size:
        blocks = np.abs(plain).reshape(*plain.shape[:-1], -1, known.block_size)
        return np.repeat(blocks.max(axis=-1), known.block_size, axis=-1)
    others = tuple(axis for axis in range(plain.ndim) if axis != known.axis)
    largest: np.ndarray = np.abs(plain).max(axis=others, keepdims=True)
    return largest
