"""Compares the weights of an ONNX file in fewer bits with those of its source."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.formats.onnx.model import read_initializers
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.onnx.passes.compress_weights import Compressed, StoredWeight
from tmconvert.targets.onnx.verify.sessions import Session
from tmconvert.verification.compressed_weights import verify_compressed
from tmconvert.verification.references import References
from tmconvert.verification.verify import Verification

_HALF = 0.5005  # of a step, with the roundings of float32
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
    constants = dict(read_initializers(str(path)))
    for each in stored:  # what computes in float16 has scales by the name of the type
        parts = (each.scale, each.factor, each.zero_point, each.offset, *each.n_bits)
        for name in [value.name for value in parts if value is not None]:
            if name not in constants and f"{name}_float16" in constants:
                constants[name] = constants[f"{name}_float16"]
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
    plain = each.plain.data
    assert plain is not None
    integers = constants.get(each.stored.name)
    if integers is not None and each.steps is None:
        half = np.abs(plain) * np.float32(2.0**-11 * 1.001) + _LEAST
        yield integers.shape == plain.shape and bool(
            np.all(np.abs(integers.astype(np.float32) - plain) <= half)
        )
        return
    for scale, zero in ((each.scale, each.zero_point), (each.factor, each.offset)):
        if integers is not None and scale is not None and scale.name in constants:
            zeros = None if zero is None else constants[zero.name]
            yield _are_near(each, plain, integers, constants[scale.name], zeros)
    if each.n_bits:
        yield _are_near(each, plain, *_of_n_bits(each, *(constants[value.name] for value in each.n_bits)))


def _are_near(
    each: StoredWeight, plain: np.ndarray, integers: np.ndarray, scale: np.ndarray, zeros: np.ndarray | None
) -> bool:
    """Whether integers give ``plain`` but for half a step; beyond the ends of the range, further."""
    assert each.steps is not None
    low, high = each.steps.low, each.steps.high
    parts, wanted = (x.astype(np.float32).reshape(each.split_shape) for x in (integers, plain))
    factor = scale.astype(np.float32).reshape(each.scale_shape)
    zero = np.float32(0) if zeros is None else zeros.astype(np.float32).reshape(each.scale_shape)
    if integers.shape != plain.shape or np.any((parts < low) | (parts > high)):
        return False
    off = (wanted - (parts - zero) * factor) * np.sign(factor)  # in the direction of the integers
    half = np.abs(factor) * np.float32(_HALF)
    above, below = off <= half, off >= -half
    return bool(np.all((above | (parts == high)) & (below | (parts == low))))


def _of_n_bits(
    each: StoredWeight, packed: np.ndarray, scale: np.ndarray, zeros: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The same for the weights [N, blocks, bytes] and scales [N, blocks] of MatMulNBits."""
    assert each.steps is not None

    def unpacked(array: np.ndarray) -> np.ndarray:
        return np.stack([array & 0x0F, array >> 4], axis=-1).reshape(len(array), -1).astype(np.float32)

    integers = unpacked(packed)
    found = None if zeros is None else unpacked(zeros)[:, : scale.shape[1]]
    integers -= 8 * (found is None)
    if each.axis == 0:  # the sum is over the rows of the weight
        return integers.T, scale.T, None if found is None else found.T
    return integers, scale, found
