"""Weights of layers as matrices [O, C / groups, taps], with a row per output channel."""

from __future__ import annotations

import numpy as np

from tmconvert.ir import CallFunction
from tmconvert.symbolics.registry import trait_of
from tmconvert.symbolics.traits import Weights


def groups(call: CallFunction) -> int:
    return int(call.kwargs.get("groups", 1))


def _is_transposed(call: CallFunction) -> bool:
    weights = trait_of(call, Weights)
    assert weights is not None
    return weights.is_transposed


def rows(call: CallFunction, weight: np.ndarray) -> np.ndarray:
    """Returns the weight of ``call`` as [O, C / groups, taps]; a linear layer has one tap."""
    if not _is_transposed(call):
        return weight.reshape(*weight.shape[:2], -1)
    parted = weight.reshape(groups(call), -1, weight.shape[1], weight[0, 0].size)
    return parted.swapaxes(1, 2).reshape(-1, parted.shape[1], parted.shape[3])


def weight_of(call: CallFunction, matrix: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Reshapes these rows to a weight."""
    if not _is_transposed(call):
        return matrix.reshape(shape)
    parted = matrix.reshape(groups(call), shape[1], -1, matrix.shape[2])
    return parted.swapaxes(1, 2).reshape(shape)


def columns(call: CallFunction, matrix: np.ndarray) -> np.ndarray:
    """Returns the operand channel of each row and column as [O, C / groups]."""
    outputs, width = matrix.shape[:2]
    group = np.arange(outputs) // (outputs // groups(call))
    return group[:, None] * width + np.arange(width)
