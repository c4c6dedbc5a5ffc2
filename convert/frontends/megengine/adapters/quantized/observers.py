"""Scales and zero points of MegEngine's observers, computed in float32 like there.

Each function takes the module and the observed tensor, if that is known, and returns (scale, zero point or
None), as arrays. An observer that was saved while it was enabled keeps observing when the model runs, so that
its parameters include the current tensor. SyncMinMaxObserver and HistogramObserver always do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir import TracedModule
from tmconvert.ir.fake_quant import round_half_away

Scales = tuple[np.ndarray, np.ndarray | None]

MAX_BINS = 1 << 14  # the search takes time by the square of their number
MAX_STRETCH = 1 << 10
SEARCH_STEP = 1e-5


def scalar(module: TracedModule, name: str) -> np.ndarray:
    """Returns a statistic of a module, in float32. Raises Refusal where it is missing."""
    array = module.tensors.get(name)
    if array is None:
        raise Refusal(f"{module.name or module.class_name} has no {name}", HELP)
    return np.asarray(array, np.float32)


HELP = "run quantization-aware training or calibration before saving, or disable the fake quantization"


def min_max(module: TracedModule, seen: np.ndarray | None) -> Scales:
    """MinMaxObserver: the running minimum and maximum."""
    return _from_range(module, *_extremes(module, seen if module.attributes["enabled"] else None))


def sync_min_max(module: TracedModule, seen: np.ndarray | None) -> Scales:
    """SyncMinMaxObserver tests its method ``enable``, which is always true, instead of ``enabled``."""
    return _from_range(module, *_extremes(module, seen))


def moving_average(module: TracedModule, seen: np.ndarray | None) -> Scales:
    """ExponentialMovingAverageObserver: the moving average of each batch's minimum and maximum."""
    low, high = _extremes(module, None)
    if module.attributes["enabled"] and seen is not None:
        kept = scalar(module, "runtime_momentum")
        low = low * kept + (np.float32(1) - kept) * seen.min()
        high = high * kept + (np.float32(1) - kept) * seen.max()
    return _from_range(module, low, high)


def _extremes(module: TracedModule, seen: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    low, high = scalar(module, "min_val"), scalar(module, "max_val")
    if seen is None:
        return low, high
    return np.minimum(low, seen.min()), np.maximum(high, seen.max())


def _from_range(module: TracedModule, low: np.ndarray, high: np.ndarray) -> Scales:
    steps = module.attributes["qmax"] - module.attributes["qmin"]
    limit = np.float32(module.attributes["scale_limit"])
    low, high = np.minimum(np.float32(0), low), np.maximum(np.float32(0), high)
    if module.attributes["mode"] == "symmetric":
        return np.maximum(np.maximum(-low, high) / np.float32(steps / 2), limit), None
    scale = np.maximum((high - low) / np.float32(steps), limit)
    return scale, np.float32(module.attributes["qmin"]) - round_half_away(low / scale)


def passive(module: TracedModule, seen: np.ndarray | None) -> Scales | None:
    """PassiveObserver: parameters that were set from outside; None before that."""
    held = module.attributes.get("qparams")
    if held is None or held["scale"] is None:
        return None
    return np.asarray(held["scale"], np.float32), held["zero_point"]


def histogram(module: TracedModule, seen: np.ndarray | None) -> Scales:
    """HistogramObserver: the range with the least squared quantization error."""
    low, high = scalar(module, "min_val"), scalar(module, "max_val")
    counts = scalar(module, "histogram").reshape(-1)
    bins = len(counts)
    if bins != module.attributes["bins"] or not 0 < bins <= MAX_BINS:
        raise Refusal(
            (f"the histogram has {bins} bins, but the observer has bins={module.attributes['bins']}"), HELP
        )
    if seen is not None:
        counts, low, high = _counted(counts, low, high, seen, int(module.attributes["upsample_rate"]))
    width = float(np.float32(high - low)) / bins
    if not math.isfinite(width) or not np.isfinite(counts).all():
        raise Refusal(f"the histogram of {module.name} is not finite", HELP)
    first, last = _clipped(counts.astype(np.float64), width, int(module.attributes["dst_nbins"]))
    return _from_range(module, low + np.float32(width * first), low + np.float32(width * (last + 1)))


def _counted(
    counts: np.ndarray, low: Any, high: Any, seen: np.ndarray, rate: int
) -> tuple[np.ndarray, Any, Any]:
    """Returns (counts, low, high) of the histogram after the elements of ``seen`` were added.

    Where they lie outside its range, the range is stretched to a whole multiple of the bins cut in
    ``rate`` parts, and the old counts are spread over those.
    """
    bins, old_low, old_high = len(counts), float(low), float(high)
    if counts[0] == -1:  # nothing was counted yet
        low, high = seen.min(), seen.max()
        return np.histogram(seen, bins, (low, high))[0].astype(np.float32), low, high
    low, high = min(float(seen.min()), old_low), max(float(seen.max()), old_high)
    part = (old_high - old_low) / (bins * rate)
    parts_per_bin = math.ceil((high - low) / (bins * part))
    if not 0 < parts_per_bin <= MAX_STRETCH or not 0 < rate <= MAX_STRETCH:
        raise Refusal("the values are far outside of the histogram's range", HELP)
    margin = (parts_per_bin * bins * part - (high - low)) / 2
    low, high = low - margin, high + margin
    result = np.histogram(seen, bins, (low, high))[0].astype(np.float64)
    if (low, high) == (old_low, old_high):
        return (result + counts).astype(np.float32), np.float32(low), np.float32(high)
    begin = round((old_low - low) / part)
    fine = np.zeros(bins * parts_per_bin)
    fine[begin : begin + bins * rate] = np.repeat(counts, rate)
    result += np.diff(np.cumsum(fine)[parts_per_bin - 1 :: parts_per_bin], prepend=0) / rate
    return result.astype(np.float32), np.float32(low), np.float32(high)


def _clipped(counts: np.ndarray, width: float, levels: int) -> tuple[int, int]:
    """(first, last) bin of the range to keep.

    One end or the other moves in by a hundred thousandth of the samples, whichever covers fewer
    bins, until the error grows.
    """
    below, total = np.cumsum(counts), float(counts.sum())
    first, last, alpha, beta, least = 0, len(counts) - 1, 0.0, 1.0, math.inf
    while alpha < beta:
        left, right = first, last
        while left < last and below[left] < (alpha + SEARCH_STEP) * total:
            left += 1
        while right > first and below[right] > (beta - SEARCH_STEP) * total:
            right -= 1
        moved = (first, last)
        if left - first > last - right:
            alpha, moved = alpha + SEARCH_STEP, (left, last)
        else:
            beta, moved = beta - SEARCH_STEP, (first, right)
        if moved == (first, last):
            continue
        error = _squared_error(counts, width, *moved, levels)
        if error > least:
            break
        least, (first, last) = error, moved
    return first, last


def _squared_error(counts: np.ndarray, width: float, first: int, last: int, levels: int) -> float:
    """The error of rounding to ``levels`` values between the bins ``first`` and ``last``."""
    step = width * (last - first + 1) / levels
    if step == 0:
        return 0.0
    begin = (np.arange(len(counts)) - first) * width
    end = begin + width
    from_level = np.clip(np.floor(begin / step), 0, levels - 1)
    to_level = np.clip(np.floor(end / step), 0, levels - 1)
    from_centre, to_centre = (level * step + step / 2 for level in (from_level, to_level))
    inside = _cube(begin - from_centre, end - from_centre)
    across = _cube(begin - from_centre, np.asarray(step / 2))
    across = across + (to_level - from_level - 1) * _cube(np.asarray(-step / 2), np.asarray(step / 2))
    across = across + _cube(np.asarray(-step / 2), end - to_centre)
    return float((counts / width * np.where(from_level == to_level, inside, across)).sum())


def _cube(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The integral of x squared."""
    return (end * end * end - begin * begin * begin) / 3


OBSERVERS: dict[str, Callable[[TracedModule, Any], Any]] = {
    "MinMaxObserver": min_max,
    "SyncMinMaxObserver": sync_min_max,
    "ExponentialMovingAverageObserver": moving_average,
    "SyncExponentialMovingAverageObserver": moving_average,
    "HistogramObserver": histogram,
    "PassiveObserver": passive,
}
