"""Judges one tensor of a comparison: its accumulated and its local error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tmconvert.errors import TmconvertError
from tmconvert.inspection.compared_models import Tensor
from tmconvert.inspection.differences import LIMITS, Difference, aligned, difference
from tmconvert.inspection.graph_segments import Segments


class Judgement(NamedTuple):
    """The errors of a tensor, the limit of the one that counts, and whether it is exceeded."""

    accumulated: Difference
    local: Difference | None
    limit: float
    is_wrong: bool


def judged(
    tensor: Tensor,
    expected: np.ndarray,
    values: Mapping[str, np.ndarray],
    segments: Segments | None,
    limits: tuple[str, tuple[float, float] | None],
    channel_axis: int | None,
) -> Judgement:
    """Compares a tensor of the suspect with what is expected, and with what its own operands lead to.

    ``limits`` are the kind of the file, and the real values that the tensor can have. With a
    ``channel_axis``, after an equalization, the tensor may differ by a positive factor for each channel.
    """
    kind, span = limits
    actual, order = aligned(expected, values[tensor.name])
    predicted = None if segments is None else _predicted(segments, tensor.key, values)
    if segments is not None:
        segments.orders[tensor.name] = order
        if channel_axis is not None:
            factors = _factors(expected if predicted is None else predicted, actual, channel_axis)
            segments.factors[tensor.name] = factors
            actual, span = actual / factors, None
    accumulated = difference(expected, actual)
    if segments is None or predicted is None:
        limit = LIMITS[kind].accumulated
        return Judgement(accumulated, None, limit, accumulated.largest > limit)
    if kind == "integers":
        predicted, actual = (segments.clamped(tensor.key, each) for each in (predicted, actual))
    local, is_wrong = _local(predicted, actual, span, kind)
    return Judgement(accumulated, local, LIMITS[kind].local, is_wrong)


def _predicted(segments: Segments, key: str, values: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Returns what the trusted operation makes of the operands of the suspect; None where it refuses them."""
    try:
        return segments.predicted(key, values)
    except (TmconvertError, ValueError, IndexError, KeyError):
        return None


def _factors(expected: np.ndarray, actual: np.ndarray, channel_axis: int) -> np.ndarray:
    """Returns the positive factor of each channel by which ``actual`` is larger: least squares."""
    if expected.shape != actual.shape or expected.ndim < 2:
        return np.ones((), np.float32)
    axes = tuple(axis for axis in range(expected.ndim) if axis != channel_axis % expected.ndim)
    # what integers cannot represent tells nothing of the factor
    is_inner = (actual > actual.min()) & (actual < actual.max())
    is_inner |= ~is_inner.any(axis=axes, keepdims=True)
    one, other = np.where(is_inner, expected, 0), np.where(is_inner, actual, 0)
    products = np.sum(one * other, axis=axes, keepdims=True, dtype=np.float64)
    powers = np.sum(one * one, axis=axes, keepdims=True, dtype=np.float64)
    known = (powers > 0) & (products > 0)
    factors = np.where(known, products / np.where(powers > 0, powers, 1), 1)
    return np.asarray(factors, np.float32)


def _local(
    predicted: np.ndarray, actual: np.ndarray, span: tuple[float, float] | None, kind: str
) -> tuple[Difference, bool]:
    """Returns the local difference, and whether it is too large.

    Integers saturate, which calibration allows for a few values: these count in the noise alone.
    """
    whole, limits = difference(predicted, actual), LIMITS[kind]
    if kind != "integers" or not np.isfinite(whole.largest) or not actual.size:
        return whole, whole.largest > limits.local or whole.noise > limits.local_noise
    low, high = span or (float(actual.min()), float(actual.max()))
    clipped = difference(np.clip(predicted, low, high), actual)
    return whole, clipped.largest > limits.local or whole.noise > limits.local_noise
