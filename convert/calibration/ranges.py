"""Range estimators: one pass over the samples, with constant memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BINS = 2048
_PIECE = 1 << 16  # elements counted at a time: they stay in the processor's cache
_STEPS = 255  # between the ends of eight bits
_HIDDEN = -1e9  # what masks put in the place of scores that softmax is not to see lies below this


class Histogram:
    """A histogram of equal bins, whose range doubles for values outside of it.

    Without ``has_tails`` no values are expected outside of the observed range.
    """

    def __init__(self, *, has_tails: bool = True) -> None:
        self.has_tails = has_tails
        self.low, self.high = 0.0, 0.0  # ends of what was seen, 0 included
        self.reached_low, self.reached_high = 0, 0  # how many arrays reach them
        self.width = 0.0  # of a bin
        self.first = 0  # number of the first bin: bin i is [i, i + 1) * width
        self.counts = np.zeros(BINS, np.int64)
        self.hides = False  # whether something was hidden, which is no part of the range

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
        self.reached_low = (self.reached_low if low >= self.low else 0) + (low <= self.low)
        self.reached_high = (self.reached_high if high <= self.high else 0) + (high >= self.high)
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self.high == self.low:
            return
        if not self.width:
            self.width = max(self.high - self.low, 1e-30) / BINS * 2
            self.first = -BINS // 2
        while not self._holds(self.low, self.high):
            self._double()
        flat = array.reshape(-1)
        for start in range(0, flat.size, _PIECE):
            bins = np.floor(flat[start : start + _PIECE].astype(np.float64) / self.width).astype(np.int64)
            self.counts += np.bincount(np.clip(bins - self.first, 0, BINS - 1), minlength=BINS)

    def _holds(self, low: float, high: float) -> bool:
        return self.first * self.width <= low and high < (self.first + BINS) * self.width

    def _double(self) -> None:
        """Doubles the bin width by merging pairs of bins."""
        pairs = np.zeros(BINS, np.int64)
        first = self.first // 2 - BINS // 4
        places = (np.arange(BINS) + self.first) // 2 - first
        np.add.at(pairs, places, self.counts)
        self.counts, self.first, self.width = pairs, first, self.width * 2

    def centres(self) -> np.ndarray:
        return (np.arange(BINS) + self.first + 0.5) * self.width


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
    if not seen.counts.any():
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
