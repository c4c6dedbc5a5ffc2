"""The range of a tensor, from what is seen of it: one pass, memory that does not grow with the data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BINS = 2048
_STEPS = 255  # between the ends of a grid of eight bits
_HIDDEN = -1e9  # what masks put in the place of scores that softmax is not to see lies below this


class Histogram:
    """Counts of equal bins over a range that doubles when something lies beyond it."""

    def __init__(self) -> None:
        self.low, self.high = 0.0, 0.0  # ends of what was seen, 0 included
        self.width = 0.0  # of a bin
        self.first = 0  # number of the first bin: bin i is [i, i + 1) * width
        self.counts = np.zeros(BINS, np.int64)
        self.hides = False  # whether something was hidden, which is no part of the range

    def add(self, array: np.ndarray) -> None:
        """Raises ValueError for NaN and infinities, but for -inf that hides."""
        hidden = array <= _HIDDEN
        if hidden.any():
            self.hides, array = True, array[~hidden]
        if not array.size:
            return
        low, high = float(np.min(array)), float(np.max(array))
        if not np.isfinite(low + high):
            raise ValueError("it has NaN or infinity")
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self.high == self.low:
            return
        if not self.width:
            self.width = max(self.high - self.low, 1e-30) / BINS * 2
            self.first = -BINS // 2
        while not self._holds(self.low, self.high):
            self._double()
        bins = np.floor(array.reshape(-1).astype(np.float64) / self.width).astype(np.int64) - self.first
        self.counts += np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS)

    def _holds(self, low: float, high: float) -> bool:
        return self.first * self.width <= low and high < (self.first + BINS) * self.width

    def _double(self) -> None:
        """Bins of twice the width: of 2 i and 2 i + 1 one."""
        pairs = np.zeros(BINS, np.int64)
        first = self.first // 2 - BINS // 4
        places = (np.arange(BINS) + self.first) // 2 - first
        np.add.at(pairs, places, self.counts)
        self.counts, self.first, self.width = pairs, first, self.width * 2

    def centres(self) -> np.ndarray:
        return (np.arange(BINS) + self.first + 0.5) * self.width


def below(low: float, high: float) -> float:
    """A number that counts for nothing in the softmax of others between ``low`` and ``high``."""
    return low - (high - low) - 16 if high > low else -256


Method = Callable[[Histogram], tuple[float, float]]


def min_max(seen: Histogram) -> tuple[float, float]:
    """All that was seen."""
    return seen.low, seen.high


def percentile(share: float = 99.99) -> Method:
    """What lies between the two percentiles that leave out ``100 - share`` percent together."""

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
    """The range with the least mean squared error of rounding to its grid and clipping to its ends."""
    return _best(seen, _squared_error)


def entropy(seen: Histogram) -> tuple[float, float]:
    """The range whose grid keeps the distribution best: the least Kullback-Leibler divergence."""
    return _best(seen, _divergence)


METHODS: dict[str, Method] = {
    "minmax": min_max,
    "percentile": percentile(),
    "mse": least_squares,
    "entropy": entropy,
}

_SHARES = np.linspace(0.2, 1.0, 81)


def _best(
    seen: Histogram, cost: Callable[[np.ndarray, np.ndarray, float, float], float]
) -> tuple[float, float]:
    """Of ranges that are shares of the whole, the one of least cost; of equal ones the widest."""
    if not seen.counts.any():
        return min_max(seen)
    centres, counts = seen.centres(), seen.counts.astype(np.float64)
    costs = [cost(centres, counts, share * seen.low, share * seen.high) for share in _SHARES]
    share = _SHARES[len(costs) - 1 - int(np.argmin(costs[::-1]))]
    return share * seen.low, share * seen.high


def _squared_error(centres: np.ndarray, counts: np.ndarray, low: float, high: float) -> float:
    step = (high - low) / _STEPS
    clipped = np.clip(centres, low, high)
    off = centres - clipped
    rounding = np.where(off == 0, step * step / 12, 0.0)
    rounding[np.abs(centres) < step / 2] = 0.0 if low == 0 or high == 0 else step * step / 12
    return float(np.sum(counts * (off * off + rounding)))


def _divergence(centres: np.ndarray, counts: np.ndarray, low: float, high: float) -> float:
    """Of the clipped distribution from itself in the grid's steps, spread evenly over the bins of each."""
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
