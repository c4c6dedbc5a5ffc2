"""Compares the weights of a TFLite file in fewer bits with those of its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir.lazy_constants import Array, computed, viewed
from tmconvert.lowering.rounded_constants import largest, pieces
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
        found = list(constants.get(kept.name, []))
        if kept.quantization is not None and not kept.quantization.block_size:
            tables = [constants.get(each.name, []) for each in rows_of(kept)]
            for rows, scale in zip(*tables, strict=False):
                quantization = kept.quantization._replace(scale=restored(scale).reshape(-1))
                found.append(replace(rows, quantization=quantization))
        if not found:
            raise VerificationError("TM4001", f"the file has no weight {kept.name}, which its source has")
        if not all(_is_near(plain, each, kept) for each in found):
            message = (
                f"the weight {kept.name} of the file differs from that of its source by more than half a step"
            )
            raise VerificationError("TM4001", message)


def _is_near(plain: Value, found: Value, kept: Value) -> bool:
    """Whether a weight of the file is within half a step of ``plain``, or at the end of its range where that
    is beyond it; and whether the largest element needs such steps, which zeros have of any size.
    """
    known = found.quantization
    if found.shape != plain.shape or (known is None) != (kept.quantization is None):
        return False
    array, data = plain.elements(), found.data
    array = array if array.shape == plain.shape else computed(array).reshape(plain.shape)
    assert data is not None
    if known is None:
        return all(_is_near_half(computed(viewed(array, rows)), data[at]) for at, rows in _pieces(array))
    most, size = (1 << (BITS[kept.dtype.name] - 1)) - 1, known.block_size
    scale = known.scale[..., None] if size else scale_of(known, data.ndim)
    others = tuple(axis for axis in range(data.ndim) if axis != known.axis)
    ends = None if size else largest(array, others)
    for at, rows in _pieces(array):
        part, stored = (_in_blocks(each, size) for each in (computed(viewed(array, rows)), data[at]))
        end = largest(part, [part.ndim - 1]) if ends is None else _rows(ends, at)
        if not _is_near_steps(part, stored, _rows(scale, at), end, most):
            return False
    return True


def _in_blocks(array: np.ndarray, size: int) -> np.ndarray:
    return array.reshape(*array.shape[:-1], -1, size) if size else array


def _rows(array: np.ndarray, at: slice) -> np.ndarray:
    return array if len(array) == 1 else array[at]


def _pieces(array: Array) -> Iterator[tuple[slice, Callable[[np.ndarray], np.ndarray]]]:
    """Yields parts of the first axis, each as a slice and a view."""
    start = 0
    for piece in pieces(array):
        at = slice(start, start + piece.shape[0])
        yield at, itemgetter(at)
        start = at.stop


def _is_near_half(plain: np.ndarray, found: np.ndarray) -> bool:
    half = np.abs(plain) * np.float32(2.0**-11 * 1.001) + np.float32(2.0**-25)
    return bool(np.all(np.abs(found.astype(np.float32) - plain) <= half))


def _is_near_steps(
    plain: np.ndarray, found: np.ndarray, scale: np.ndarray, largest: np.ndarray, most: int
) -> bool:
    real = found.astype(np.float32) * scale
    error = np.abs(real - plain)
    bounds = np.where(largest == 0, np.inf, np.float32(1.2 / most) * largest + np.float32(2.0**-24))
    is_beyond = (found >= most) & (plain > real) | (found <= -most) & (plain < real)
    return bool(np.all(scale <= bounds) and np.all((error <= _HALF * scale) | is_beyond))
