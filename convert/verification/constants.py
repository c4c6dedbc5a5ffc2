"""Verifies quantized constants and QParams of a file against the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir.fake_quant import fake_quantize
from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Value


@dataclass(frozen=True)
class Kept:
    """A quantized constant of the file, and its source.

    In the file it has the integers ``steps`` with a scale and a zero point; the source has the float values
    ``plain`` with QParams ``qparams``.
    """

    name: str
    steps: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    plain: Value
    qparams: QParams


def check_constants(constants: Iterable[Kept]) -> None:
    """Raises VerificationError TM4001 for a constant that is more than half a step from the source's."""
    for kept in constants:
        if not _has_qparams(kept.scale, kept.zero, kept.qparams):
            message = f"the constant {kept.name} of the file has wrong quantization parameters"
            raise VerificationError("TM4001", message)
        if not _is_near(kept):
            message = (
                f"the constant {kept.name} of the file differs from that of its source by more than half a "
                "step"
            )
            raise VerificationError("TM4001", message)


def check_qparams(name: str, scale: np.ndarray, zero: np.ndarray, qparams: QParams) -> None:
    """Raises VerificationError TM4001 where a tensor does not have the QParams of the source."""
    if not _has_qparams(scale, zero, qparams):
        message = f"the scale or zero point of the tensor {name} in the file differs from that in the source"
        raise VerificationError("TM4001", message)


def _has_qparams(scale: np.ndarray, zero: np.ndarray, qparams: QParams) -> bool:
    scales = np.array(qparams.scale, np.float32)
    return np.array_equal(scale.reshape(-1), scales) and np.array_equal(zero.reshape(-1), qparams.zero_point)


def _is_near(kept: Kept) -> bool:
    """Whether integers are nearest to the float values, or to the source's quantized values, or clipped to
    the range. Integers have no NaN: zero stands for it.
    """
    numbers, qparams, given = kept.plain.data, kept.qparams, kept.plain.qparams
    assert numbers is not None
    columns = [1] * numbers.ndim
    if qparams.channel_axis is not None:
        columns[qparams.channel_axis] = -1
    scale, zero = (
        np.array(each, np.float64).reshape(columns) for each in (qparams.scale, qparams.zero_point)
    )
    restored = (kept.steps.astype(np.float64) - zero) * scale
    known = [numbers] if given is None or given.dtype == "int32" else [numbers, fake_quantize(numbers, given)]
    found = np.zeros(numbers.shape, bool)
    for each in known:
        each = np.where(np.isnan(each), 0.0, each)
        off = each - restored
        beyond = ((off > 0) & (kept.steps >= qparams.quant_max)) | (
            (off < 0) & (kept.steps <= qparams.quant_min)
        )
        found |= beyond | (np.abs(off) <= 0.5 * scale * (1 + 1e-5) + 2.0**-23 * np.abs(each))
    return bool(found.all())
