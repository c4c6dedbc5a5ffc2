"""Compares the weights of an ONNX file in fewer bits with those of its source."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.formats.onnx.model import read_initializers
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.onnx.passes.compress_weights import LIMITS, Compressed, StoredWeight
from tmconvert.targets.onnx.verify.sessions import Session
from tmconvert.verification.compressed_weights import verify_compressed
from tmconvert.verification.references import References
from tmconvert.verification.verify import Verification

_HALF = 0.5005  # of a step, with the roundings of float32
_LEAST = np.float32(2.0**-25)  # half of the smallest float16


def verify_compressed_onnx(
    paths: Sequence[Path], plain: TargetGraph, compressed: Compressed, references: References
) -> Verification | None:
    """Compares the file at ``paths`` with its source; returns None, with a note, if not verifiable.

    Raises VerificationError.
    """
    check_weights(paths[0], compressed.stored)
    users = Session() if compressed.is_fused and importlib.util.find_spec("onnxruntime") else None
    try:
        return verify_compressed(paths, plain, compressed.restored, (), references, users=users)
    finally:
        if users is not None:
            users.forget()


def check_weights(path: Path, stored: Sequence[StoredWeight]) -> None:
    """Raises VerificationError TM4001 where the file at ``path`` does not have the weights of ``stored``.

    Each weight is computed from the integers and scales of the file, and compared with that of the source.
    """
    constants = read_initializers(str(path))
    for each in stored:
        found = list(_found(each, constants))
        if not found:
            message = f"the file has no weight {each.stored.name}, which its source has"
            raise VerificationError("TM4001", message)
        plain = each.plain.data
        assert plain is not None
        for weight, half in found:
            if weight.shape != plain.shape or not np.all(np.abs(weight - plain) <= half):
                message = (
                    f"the weight {each.stored.name} of the file differs from that of its source by more than "
                    "half a step"
                )
                raise VerificationError("TM4001", message)


def _found(each: StoredWeight, constants: Mapping[str, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the forms of a weight in the file, in float32, each with half a step."""
    found = []
    steps = constants.get(each.stored.name)
    if steps is not None and each.scale is None:
        assert each.plain.data is not None
        half = np.abs(each.plain.data) * np.float32(2.0**-11 * 1.001) + _LEAST
        return [(steps.astype(np.float32), half)]
    for name in [value.name for value in (each.scale, each.factor) if value is not None]:
        scale = constants.get(name)
        if steps is not None and scale is not None:
            found.append(_restored(each, steps.astype(np.float32), scale))
    if each.n_bits:
        packed, scale = (constants[value.name] for value in each.n_bits[:2])
        found.append(_of_n_bits(each, packed, scale))
    return found


def _restored(each: StoredWeight, steps: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if np.any(np.abs(steps) > LIMITS[each.kind]):
        return np.full(steps.shape, np.nan, np.float32), scale
    parts, factor = steps.reshape(each.split_shape), scale.reshape(each.scale_shape)
    half = np.broadcast_to(factor * np.float32(_HALF), each.split_shape).reshape(each.plain.shape)
    return (parts * factor).reshape(each.plain.shape), half


def _of_n_bits(each: StoredWeight, packed: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for the weights [N, blocks, bytes] and scales [N * blocks] of MatMulNBits."""
    rows, blocks, _ = packed.shape
    steps = np.stack([packed & 0x0F, packed >> 4], axis=-1).reshape(rows, -1).astype(np.float32) - 8
    scale = scale.reshape(rows, blocks)
    if each.axis == 0:  # the sum is over the rows of the weight
        steps, scale = steps.T, scale.T
    return _restored(each, steps, scale)
