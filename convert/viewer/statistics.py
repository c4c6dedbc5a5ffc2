"""Statistics of constants: extremes, mean, deviation, zeros and a histogram."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tmconvert.verification.histograms import channel_histogram

BINS = 24
BLOCK = 1 << 20  # elements at a time
MOST = 1 << 24  # elements; of larger constants, regularly spaced parts are read
SMALL = 12  # elements of a constant that is shown as it is


def statistics_of(array: np.ndarray) -> dict[str, Any]:
    """Returns the statistics of a constant for the page, over its finite elements.

    Of an array with more than ``MOST`` elements, regularly spaced blocks are read; ``sampled`` is then their
    number of elements.

    >>> statistics_of(np.array([0.0, 1.0, 2.0, 5.0]))["mean"]
    2.0
    """
    found: dict[str, Any] = {"count": int(array.size), "bytes": int(array.nbytes)}
    if not array.size or array.dtype.kind not in "fiub":
        return found
    if array.size <= SMALL:
        found["values"] = [_plain(value) for value in array.reshape(-1)]
    low, high, total, squares, zeros, read, finite = np.inf, -np.inf, 0.0, 0.0, 0, 0, 0
    for block in _blocks(array):
        numbers = block[np.isfinite(block)]
        read, finite = read + block.size, finite + numbers.size
        if numbers.size:
            low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
            total, squares = total + float(numbers.sum()), squares + float(np.square(numbers).sum())
            zeros += int(np.count_nonzero(numbers == 0))
    if read < array.size:
        found["sampled"] = read
    if finite < read:
        found["not_finite"] = read - finite
    if not finite:
        return found
    mean = total / finite
    deviation = max(squares / finite - mean * mean, 0.0) ** 0.5
    found |= {"min": rounded(low), "max": rounded(high), "mean": rounded(mean), "std": rounded(deviation)}
    found["zeros"] = rounded(zeros / finite)
    if high > low and finite > SMALL:
        counts = np.zeros(BINS, np.int64)
        for block in _blocks(array):
            counts += np.histogram(block[np.isfinite(block)], BINS, (low, high))[0]
        found["histogram"] = counts.tolist()
    return found


def channels_of(array: np.ndarray, axis: int) -> dict[str, Any] | None:
    """Returns the histograms of quantized weights by channel, over the range of their type, for the page.

    It is None for other constants: of wider types, of one axis, or with more than ``MOST`` elements.
    """
    is_weight = array.dtype.kind in "iu" and array.dtype.itemsize == 1 and array.ndim > 1
    if not is_weight or not 0 < array.size <= MOST or not 0 <= axis < array.ndim:
        return None
    ends = np.iinfo(array.dtype)
    return channel_histogram(array, (float(ends.min), float(ends.max) + 1), axis).to_json()


def rounded(value: float) -> float:
    """Returns a number with six digits, which does not depend on the order of a sum."""
    return float(f"{value:.6g}")


def _plain(value: Any) -> Any:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    number = float(value)
    return rounded(number) if np.isfinite(number) else str(number)


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Returns the elements as float64, some at a time."""
    flat = array.reshape(-1)
    step = max(1, -(-flat.size // MOST)) * BLOCK
    for start in range(0, flat.size, step):
        yield flat[start : start + BLOCK].astype(np.float64)
