"""Range estimators: one pass over the samples, with constant memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

BINS = 2048
_LEAST_EXPONENT = -126  # of the width of a bin
_PIECE = 1 << 16  # elements counted at a time: they stay in the processor's cache
_STEPS = 255  # between the ends of eight bits
_HIDDEN = -1e9  # what masks put in the place of scores that softmax is not to see lies below this


class Histogram:
    """A histogram of ``BINS`` equal bins, which depends on the values only, not on their order.

    Bin i, from ``first`` on, has the values in [i, i + 1) * width. The width is the least power of two with
    which all values fit, so that histograms of parts are merged exactly. Without ``has_tails`` no values are
    expected outside of the observed range.
    """

    first = -BINS // 2

    def __init__(self, *, has_tails: bool = True) -> None:
        self.has_tails = has_tails
        self.low, self.high = 0.0, 0.0  # ends of what was seen, 0 included
        self.reached_low, self.reached_high = 0, 0  # how many arrays reach them
        self.exponent = _LEAST_EXPONENT  # the width of a bin is two to this power
        self.counts = np.zeros(BINS, np.int64)
        self.hides = False  # whether something was hidden, which is no part of the range

    @property
    def width(self) -> float:
        return float(2.0**self.exponent)

    def add(self, array: np.ndarray) -> None:
        """Adds values. Raises ValueError for NaN and infinities, except -inf of masks."""
        hidden = array <= _HIDDEN
        if hidden.any():
            self.hides, array = True, array[~hidden]
        if not array.size:
            return
        low, high = float(np.min(array)), float(np.max(array))
        if not np.isfinite(low + high):
            raise ValueError("NaN or infinity")
        self._reach(low, high, 1, 1)
        flat, scale = array.reshape(-1), 2.0**-self.exponent
        for start in range(0, flat.size, _PIECE):
            bins = np.floor(flat[start : start + _PIECE].astype(np.float64) * scale).astype(np.int64)
            self.counts += np.bincount(bins - self.first, minlength=BINS)

    def merge(self, later: Histogram) -> None:
        """Adds the values of another histogram."""
        self.hides |= later.hides
        self._reach(later.low, later.high, later.reached_low, later.reached_high)
        bins = (np.arange(BINS) + later.first) >> (self.exponent - later.exponent)
        kept = later.counts > 0
        np.add.at(self.counts, bins[kept] - self.first, later.counts[kept])

    def _reach(self, low: float, high: float, times_low: int, times_high: int) -> None:
        """Extends the range to one whose ends were reached that many times."""
        self.reached_low = (self.reached_low if low >= self.low else 0) + times_low * (low <= self.low)
        self.reached_high = (self.reached_high if high <= self.high else 0) + times_high * (high >= self.high)
        self.low, self.high = min(self.low, low), max(self.high, high)
        exponent = self.exponent
        while _bin(self.low, exponent) < self.first or _bin(self.high, exponent) >= self.first + BINS:
            exponent += 1
        if exponent > self.exponent:
            kept = np.flatnonzero(self.counts)
            bins = (kept + self.first) >> (exponent - self.exponent)
            moved = np.zeros(BINS, np.int64)
            np.add.at(moved, bins - self.first, self.counts[kept])
            self.counts, self.exponent = moved, exponent

    def centres(self) -> np.ndarray:
        return (np.arange(BINS) + self.first + 0.5) * self.width


def _bin(value: float, exponent: int) -> int:
    """Returns the number of the bin that a value is in; the product is exact."""
    return math.floor(value * 2.0**-exponent)


def below(low: float, high: float) -> float:
    """Returns a value that is negligible in a softmax together with values between ``low`` and ``high``."""
    return low - (high - low) - 16 if high > low else -256


Method = Callable[[Histogram], tuple[float, float]]


def min_max(seen: Histogram) -> tuple[float, float]:
    """Returns minimum and maximum."""
    return seen.low, seen.high


def percentile(share: float = 99.99) -> Method:
    """Returns the range between two percentiles, which together exclude ``100 - share`` percent."""

    def range_of(seen: Histogram) -> tuple[float, float]:
        total = int(seen.counts.sum())
        if not total:
            return min_max(seen)
        below = np.cumsum(seen.counts) / total
        out = (1 - share / 100) / 2
        first, last = np.searchsorted(below, out, "right"), np.searchsorted(below, 1 - out)
        low = (seen.first + int(first)) * seen.width
        high = (seen.first + int(last) + 1) * seen.width
        return max(min(low, 0.0), seen.low), min(max(high, 0.0), seen.high)

    return range_of


def least_squares(seen: Histogram) -> tuple[float, float]:
    """Returns the range with the least mean squared error of rounding and clipping.

    Larger values than the observed ones are expected, unless several samples have the same extreme, which is
    then the bound of a clamp.
    """
    centres, counts = seen.centres(), seen.counts.astype(np.float64)
    above = _clipped_off(centres, counts, seen.has_tails and seen.reached_high == 1)
    below = _clipped_off(-centres[::-1], counts[::-1], seen.has_tails and seen.reached_low == 1)

    def cost(low: float, high: float) -> float:
        return _rounded_off(centres, counts, low, high) + above(high) + below(-low)

    return _best(seen, cost, _WIDER)


def entropy(seen: Histogram) -> tuple[float, float]:
    """Returns the range with the least Kullback-Leibler divergence after quantization."""
    centres, counts = seen.centres(), seen.counts.astype(np.float64)
    return _best(seen, lambda low, high: _divergence(centres, counts, low, high), _SHARES)


METHODS: dict[str, Method] = {
    "minmax": min_max,
    "percentile": percentile(),
    "mse": least_squares,
    "entropy": entropy,
}

_SHARES = np.linspace(0.2, 1.0, 81)
_WIDER = np.linspace(0.2, 1.5, 131)
_TAIL = 32  # numbers that tell how others beyond them are spread


def _best(seen: Histogram, cost: Callable[[float, float], float], shares: np.ndarray) -> tuple[float, float]:
    """Returns the range of least cost among fractions of the whole range; the widest of equal ones."""
    if seen.low == seen.high:
        return min_max(seen)
    costs = [cost(share * seen.low, share * seen.high) for share in shares]
    share = shares[len(costs) - 1 - int(np.argmin(costs[::-1]))]
    return share * seen.low, share * seen.high


def _rounded_off(centres: np.ndarray, counts: np.ndarray, low: float, high: float) -> float:
    """Returns the squared rounding error of all values within the range."""
    step = (high - low) / _STEPS
    rounding = np.where((low <= centres) & (centres <= high), step * step / 12, 0.0)
    if low == 0 or high == 0:
        rounding[np.abs(centres) < step / 2] = 0.0
    return float(np.sum(counts * rounding))


def _clipped_off(centres: np.ndarray, counts: np.ndarray, has_tail: bool) -> Callable[[float], float]:
    """Returns the expected squared error of clipping at an upper end.

    Within the data it is counted. Of the last few numbers, with a mean m beyond u, it is that of an
    exponential distribution, 2 m^2 exp((u - end) / m): the general form of a tail (Pickands 1975) whose
    shape is not known.
    """
    last = np.cumsum(counts[::-1])[::-1]  # how many lie in a bin or above
    first = int(np.searchsorted(-last, -_TAIL, "right")) - 1
    start = centres[first] if first >= 0 else np.inf
    beyond = np.where(centres > start, counts, 0.0)
    mean = float(np.sum(beyond * (centres - start)) / max(last[first], 1)) if np.isfinite(start) else 0.0

    def error(end: float) -> float:
        if has_tail and end >= start > 0 and mean > 0:
            return float(last[first] * 2 * mean * mean * np.exp((start - end) / mean))
        return float(np.sum(counts * np.maximum(centres - end, 0.0) ** 2))

    return error


def _divergence(centres: np.ndarray, counts: np.ndarray, low: float, high: float) -> float:
    """Kullback-Leibler divergence of the clipped distribution from its quantized form."""
    step = (high - low) / _STEPS
    inside = (centres >= low) & (centres <= high)
    reference = np.where(inside, counts, 0.0)
    if not reference.any():
        return np.inf
    at = np.flatnonzero(inside)
    reference[at[0]] += counts[: at[0]].sum()
    reference[at[-1]] += counts[at[-1] + 1 :].sum()
    steps = np.clip(np.rint((centres[at] - low) / step), 0, _STEPS).astype(np.int64)
    filled = counts[at] > 0
    sums = np.bincount(steps, counts[at], _STEPS + 1)
    shares = np.bincount(steps, filled, _STEPS + 1)
    spread = np.where(filled, sums[steps] / np.maximum(shares[steps], 1), 0.0)
    p, q = reference[at] / reference.sum(), spread / max(spread.sum(), 1e-30)
    kept = p > 0
    return float(np.sum(p[kept] * np.log(p[kept] / np.maximum(q[kept], 1e-12))))
