"""Integers that stand for constants of the source, and the grids of tensors that the source names."""

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
    """``steps`` at ``scale`` and ``zero``, as the file has them, for the numbers of ``plain`` on ``grid``."""

    name: str
    steps: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    plain: Value
    grid: QParams


def check_constants(constants: Iterable[Kept]) -> None:
    """Raises VerificationError TM4001 for one that is not what the source has, to half a step."""
    for kept in constants:
        if not _is_grid(kept.scale, kept.zero, kept.grid):
            message = f"the constant {kept.name} of the file is not on the grid that belongs to it"
            raise VerificationError("TM4001", message)
        if not _is_near(kept):
            message = f"the constant {kept.name} of the file is not that of its source, to half a step"
            raise VerificationError("TM4001", message)


def check_grid(name: str, scale: np.ndarray, zero: np.ndarray, grid: QParams) -> None:
    """Raises VerificationError TM4001 where a tensor is not on the grid that the source has it on."""
    if not _is_grid(scale, zero, grid):
        message = f"the tensor {name} of the file has not the scale and zero point that its source gives it"
        raise VerificationError("TM4001", message)


def _is_grid(scale: np.ndarray, zero: np.ndarray, grid: QParams) -> bool:
    scales = np.array(grid.scale, np.float32)
    return np.array_equal(scale.reshape(-1), scales) and np.array_equal(zero.reshape(-1), grid.zero_point)


def _is_near(kept: Kept) -> bool:
    """Whether integers are nearest to the numbers, or to those that the source rounds them to, or the end of
    the grid that these lie beyond.
    """
    numbers, grid, given = kept.plain.data, kept.grid, kept.plain.qparams
    assert numbers is not None
    columns = [1] * numbers.ndim
    if grid.channel_axis is not None:
        columns[grid.channel_axis] = -1
    scale, zero = (np.array(each, np.float64).reshape(columns) for each in (grid.scale, grid.zero_point))
    restored = (kept.steps.astype(np.float64) - zero) * scale
    known = [numbers] if given is None or given.dtype == "int32" else [numbers, fake_quantize(numbers, given)]
    found = np.zeros(numbers.shape, bool)
    for each in known:
        off = each - restored
        beyond = ((off > 0) & (kept.steps >= grid.quant_max)) | ((off < 0) & (kept.steps <= grid.quant_min))
        found |= beyond | (np.abs(off) <= 0.5 * scale * (1 + 1e-5) + 2.0**-23 * np.abs(each))
    return bool(found.all())
