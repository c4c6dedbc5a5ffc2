"""Quantization noise per layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tmconvert.errors.source import Source
from tmconvert.verification.histograms import ChannelHistogram, channel_histogram

LARGEST = float(np.finfo(np.float32).max)  # what LiteRT's kernels of float32 give for infinity


@dataclass(frozen=True)
class Noise:
    """Quantization noise of one layer of a written file.

    ``local`` is the ratio of signal to noise in dB where the float layer gets the operands that the file has:
    what this layer adds. ``whole`` is that against the float model: what has come together. ``clipped`` is
    the share of elements beyond the ends of the integers, ``used`` the share of their range that is taken.
    ``step`` is 0 for a layer in float. ``module`` is the path of its module, ``source`` its location in the
    user's code; ``histogram`` counts its elements by channel.
    """

    name: str
    function: str
    local: float
    whole: float
    clipped: float
    used: float
    step: float
    module: str = ""
    source: str = ""
    histogram: ChannelHistogram | None = None

    def to_json(self) -> dict[str, object]:
        """Returns a dict; infinite ratios, of layers without noise or signal, are null."""
        return {
            "name": self.name,
            "op": self.function,
            "local_db": self.local if np.isfinite(self.local) else None,
            "accumulated_db": self.whole if np.isfinite(self.whole) else None,
            "clipped": self.clipped,
            "range_used": self.used,
            "step": self.step or None,
            "module": self.module,
            "source": self.source,
        }


@dataclass(frozen=True)
class Energies:
    """Sums over samples for one layer: energies of signal and noise against its own float result (``near``)
    and against the float model (``whole``); the number of elements ``beyond`` the quantized range ``ends``,
    of ``size``; the extremes ``low`` and ``high``. ``step`` is 0 for float. ``where`` is the location of its
    call.
    """

    name: str
    function: str
    step: float
    ends: tuple[float, float]
    near: tuple[float, float]
    whole: tuple[float, float]
    beyond: int
    size: int
    low: float
    high: float
    where: Source | None = None
    histogram: ChannelHistogram | None = None

    def __add__(self, other: Energies | None) -> Energies:
        if other is None:
            return self
        return replace(
            self,
            near=(self.near[0] + other.near[0], self.near[1] + other.near[1]),
            whole=(self.whole[0] + other.whole[0], self.whole[1] + other.whole[1]),
            beyond=self.beyond + other.beyond,
            size=self.size + other.size,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            histogram=None if self.histogram is None else self.histogram + other.histogram,
        )

    def noise(self) -> Noise:
        span = self.ends[1] - self.ends[0]
        return Noise(
            self.name,
            self.function.removeprefix("aten::"),
            decibels(*self.near),
            decibels(*self.whole),
            self.beyond / self.size if self.size else 0.0,
            min((self.high - self.low) / span, 1.0) if _is_range(self.step, self.ends) else 1.0,
            self.step,
            "" if self.where is None else self.where.scope,
            "" if self.where is None else str(self.where),
            self.histogram,
        )


def energies(signal: np.ndarray, actual: np.ndarray) -> tuple[float, float]:
    """Returns the energies of a signal and of the noise in ``actual``, over finite elements."""
    signal, actual = (np.asarray(array, np.float64) for array in (signal, actual))
    is_finite = (np.abs(signal) < LARGEST) & (np.abs(actual) < LARGEST)
    signal, actual = np.where(is_finite, signal, 0), np.where(is_finite, actual, 0)
    return float(np.sum(signal**2)), float(np.sum((signal - actual) ** 2))


def decibels(signal: float, noise: float) -> float:
    """Returns 10 log10 of the energy of a signal over that of the noise."""
    if noise == 0:
        return float("inf")
    return 10 * float(np.log10(signal / noise)) if signal and noise < np.inf else float("-inf")


def energies_of(
    name: str,
    function: str,
    actual: np.ndarray,
    near: np.ndarray,
    whole: np.ndarray,
    step: float,
    ends: tuple[float, float],
    where: Source | None = None,
) -> Energies:
    """Sums over one sample; ``near`` is the float result of the file's operands before clipping."""
    low, high = ends
    beyond = (near < low - step / 2) | (near > high + step / 2) if _is_range(step, ends) else np.zeros(1)
    return Energies(
        name,
        function,
        step,
        ends,
        energies(near, actual),
        energies(whole, actual),
        int(np.sum(beyond)),
        near.size,
        float(np.min(actual, initial=0)),
        float(np.max(actual, initial=0)),
        where,
        channel_histogram(actual, ends) if _is_range(step, ends) else None,
    )


def _is_range(step: float, ends: tuple[float, float]) -> bool:
    return step > 0 and bool(np.isfinite(ends[1] - ends[0])) and ends[1] > ends[0]
