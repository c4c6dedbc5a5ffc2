"""Histograms of a quantized tensor by channel, over the range of its integers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

BINS = 32
MOST = 64  # rows: of more channels, neighbours share one


@dataclass(frozen=True)
class ChannelHistogram:
    """Counts of elements: ``counts`` has a row for each channel, or group of channels, and a column for each
    of ``BINS`` equal parts of the range from ``low`` to ``high``.
    """

    counts: np.ndarray
    channels: int
    low: float
    high: float

    def __add__(self, other: ChannelHistogram | None) -> ChannelHistogram:
        """Adds the counts of another sample, where it has as many channels."""
        if other is None or other.counts.shape != self.counts.shape:
            return self
        return replace(self, counts=self.counts + other.counts)

    def to_json(self) -> dict[str, object]:
        return {
            "channels": self.channels,
            "low": float(f"{self.low:.6g}"),
            "high": float(f"{self.high:.6g}"),
            "counts": self.counts.tolist(),
        }


def channel_histogram(array: np.ndarray, ends: tuple[float, float], axis: int = 1) -> ChannelHistogram:
    """Counts the elements of an array by channel; those beyond ``ends`` are in the outer columns.

    >>> channel_histogram(np.array([[0.0, 1.0]]), (0.0, 1.0)).counts.sum(axis=1)
    array([1, 1])
    """
    low, high = ends
    has_channels = array.ndim > 1 and axis < array.ndim and array.shape[axis] > 0
    channels = array.shape[axis] if has_channels else 1
    rows = np.moveaxis(array, axis, 0).reshape(channels, -1) if has_channels else array.reshape(1, -1)
    share = (np.nan_to_num(rows.astype(np.float64)) - low) / (high - low) * BINS
    columns = np.clip(share, 0, BINS - 1).astype(np.int64)
    group = -(-channels // MOST)
    numbers = (np.arange(channels) // group)[:, None] * BINS + columns
    shape = (-(-channels // group), BINS)
    counts = np.bincount(numbers.reshape(-1), minlength=shape[0] * BINS).reshape(shape)
    return ChannelHistogram(counts, channels, low, high)
