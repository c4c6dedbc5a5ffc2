"""Compares the weights of an ONNX file in fewer bits with those of its source."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.formats.onnx.model import Initializers
from tmconvert.ir.lazy_constants import computed, viewed
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.targets.onnx.passes.compress_weights import Compressed, StoredWeight
from tmconvert.targets.onnx.verify.sessions import Session
from tmconvert.verification.compressed_weights import verify_compressed
from tmconvert.verification.references import References
from tmconvert.verification.verify import Verification

_HALF = 0.5005  # of a step, with the roundings of float32
_PIECE = 1 << 24  # bytes of a weight that are compared at a time
_LEAST = np.float32(2.0**-25)  # half of the smallest float16


def verify_compressed_onnx(
    paths: Sequence[Path],
    plain: TargetGraph,
    compressed: Compressed,
    references: References,
    written: TargetGraph,
    computes_in: str,
) -> Verification | None:
    """Compares the file at ``paths``, of the graph ``written``, with its source.

    Returns None, with a note, if it is not verifiable.

    Raises VerificationError.
    """
    check_weights(paths[0], compressed.stored)
    users = Session() if compressed.is_fused and importlib.util.find_spec("onnxruntime") else None
    try:
        return verify_compressed(
            paths,
            plain,
            compressed.restored,
            (),
            references,
            users=users,
            types=[value.dtype for value in written.inputs] if computes_in else None,
            computes_in=computes_in,
        )
    finally:
        if users is not None:
            users.forget()


def check_weights(path: Path, stored: Sequence[StoredWeight]) -> None:
    """Raises VerificationError TM4001 where the file at ``path`` does not have the weights of ``stored``.

    Each weight is computed from the integers and scales of the file, and compared with that of the source.
    """
    constants = Initializers(str(path))
    for each in stored:
        found = list(_found(each, constants))
        if not found:
            message = f"the file has no weight {each.stored.name}, which its source has"
            raise VerificationError("TM4001", message)
        if not all(found):
            message = (
                f"the weight {each.stored.name} of the file differs from that of its source by more than "
                "half a step"
            )
            raise VerificationError("TM4001", message)


def _found(each: StoredWeight, constants: Mapping[str, np.ndarray]) -> Iterator[bool]:
    """Returns whether each form of a weight in the file is within half a step of the source's."""
    integers = constants.get(each.stored.name)
    if integers is not None and integers.shape != each.plain.shape:
        yield False
        return
    if integers is not None and each.steps is None:
        axis = _axis(each)
        yield all(_is_near_half(plain, _rows(integers, at, axis)) for at, plain in _pieces(each))
        return
    for scale, zero in ((each.scale, each.zero_point), (each.factor, each.offset)):
        factor, zeros = _parameter(constants, scale), _parameter(constants, zero)
        if integers is not None and factor is not None:
            yield all(
                _are_near(each, plain, *_in_blocks(each, at, integers, factor, zeros))
                for at, plain in _pieces(each)
            )
    if each.n_bits:
        parts = [array for value in each.n_bits if (array := _parameter(constants, value)) is not None]
        yield all(
            _are_near(each, plain, *_of_n_bits(each, *(part[at] for part in parts)))
            for at, plain in _pieces(each)
        )


def _parameter(constants: Mapping[str, np.ndarray], value: Value | None) -> np.ndarray | None:
    """Returns a constant by its name; what computes in float16 has scales by the name of the type."""
    if value is None:
        return None
    return constants.get(value.name, constants.get(f"{value.name}_float16"))


def _axis(each: StoredWeight) -> int:
    """Returns an axis along which a weight is compared in pieces, which is not that of scales or blocks."""
    return int(each.axis == 0 and len(each.plain.shape) > 1)


def _pieces(each: StoredWeight) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields parts of the weight of the source along ``_axis``, whose steps fit into memory."""
    array, axis = each.plain.elements(), _axis(each)
    array = array if array.shape == each.plain.shape else computed(array).reshape(each.plain.shape)
    step = max(1, array.shape[axis] * _PIECE // max(array.nbytes, 1)) if array.ndim else 1
    for start in range(0, array.shape[axis] if array.ndim else 1, step):
        at = slice(start, start + step)
        yield at, computed(viewed(array, partial(_rows, at=at, axis=axis)))


def _rows(array: np.ndarray, at: slice, axis: int) -> np.ndarray:
    return array[(slice(None),) * axis + (at,)] if array.ndim else array


def _in_blocks(
    each: StoredWeight, at: slice, integers: np.ndarray, scale: np.ndarray, zeros: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Returns a part of integers, scales and zero points with an axis of blocks."""
    axis = _axis(each)
    split_axis = axis + bool(each.block_size and axis > each.axis)
    scales = [
        None if array is None else array.reshape(each.scale_shape) for array in (scale, zeros)
    ]  # of 1 along the axis, where all of it have one scale
    factor, zero = (
        array if array is None or array.shape[split_axis] == 1 else _rows(array, at, split_axis)
        for array in scales
    )
    assert factor is not None
    return _rows(integers.reshape(each.split_shape), at, split_axis), factor, zero


def _is_near_half(plain: np.ndarray, found: np.ndarray) -> bool:
    half = np.abs(plain) * np.float32(2.0**-11 * 1.001) + _LEAST
    return bool(np.all(np.abs(found.astype(np.float32) - plain) <= half))


def _are_near(
    each: StoredWeight, plain: np.ndarray, integers: np.ndarray, scale: np.ndarray, zeros: np.ndarray | None
) -> bool:
    """Whether integers give ``plain`` but for half a step; beyond the ends of the range, further."""
    assert each.steps is not None
    low, high = each.steps.low, each.steps.high
    parts, factor = integers.astype(np.float32), scale.astype(np.float32)
    if np.any((parts < low) | (parts > high)):
        return False
    real = (parts if zeros is None else parts - zeros.astype(np.float32)) * factor
    off = (plain.reshape(parts.shape) - real) * np.sign(factor)  # in the direction of the integers
    half = np.abs(factor) * np.float32(_HALF)
    above, below = off <= half, off >= -half
    return bool(np.all((above | (parts == high)) & (below | (parts == low))))


def _of_n_bits(
    each: StoredWeight, packed: np.ndarray, scale: np.ndarray, zeros: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The same for weights [N, blocks, bytes] and scales [N, blocks] of MatMulNBits, of some of its rows."""

    def unpacked(array: np.ndarray) -> np.ndarray:
        return np.stack([array & 0x0F, array >> 4], axis=-1).reshape(len(array), -1).astype(np.float32)

    def in_place(array: np.ndarray) -> np.ndarray:
        """Returns what has a block in its last axis in the order of the weight, whose rows may be summed."""
        parts = array.reshape(*scale.shape, -1)
        return parts if each.axis else np.moveaxis(parts, 0, -1)

    found = None if zeros is None else unpacked(zeros)[:, : scale.shape[1]]
    integers = unpacked(packed) - 8 * (found is None)
    return in_place(integers), in_place(scale), None if found is None else in_place(found)
