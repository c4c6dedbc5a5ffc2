"""What the integers of a layer cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Noise:
    """Of one layer of a written file.

    ``local`` is the ratio of signal to noise in dB where the float layer gets the operands that the file has:
    what this layer adds. ``whole`` is that against the float model: what has come together. ``clipped`` is
    the share of elements beyond the ends of the integers, ``used`` the share of their range that is taken.
    ``step`` is 0 for a layer in float.
    """

    name: str
    function: str
    local: float
    whole: float
    clipped: float
    used: float
    step: float


def signal_to_noise(signal: np.ndarray, actual: np.ndarray) -> float:
    """10 log10 of the energy of a signal over that of the noise in ``actual``, in dB; of finite elements."""
    signal, actual = (np.asarray(array, np.float64) for array in (signal, actual))
    is_finite = np.isfinite(signal) & np.isfinite(actual)
    signal, actual = np.where(is_finite, signal, 0), np.where(is_finite, actual, 0)
    noise = float(np.sum((signal - actual) ** 2))
    energy = float(np.sum(signal**2))
    if noise == 0:
        return float("inf")
    return 10 * float(np.log10(energy / noise)) if energy else float("-inf")


def noise_of(
    name: str,
    function: str,
    actual: np.ndarray,
    near: np.ndarray,
    whole: np.ndarray,
    step: float,
    ends: tuple[float, float],
) -> Noise:
    """``near`` is what the float layer gives for the file's operands, before it is cut off at ``ends``."""
    low, high = ends
    is_finite = step > 0 and np.isfinite(high - low) and high > low
    beyond = (near < low - step / 2) | (near > high + step / 2) if is_finite else np.zeros(1, bool)
    reached = float(np.max(actual, initial=0) - np.min(actual, initial=0))
    return Noise(
        name,
        function.removeprefix("aten::"),
        signal_to_noise(near, actual),
        signal_to_noise(whole, actual),
        float(np.mean(beyond)) if beyond.size else 0.0,
        min(reached / (high - low), 1.0) if is_finite else 1.0,
        step,
    )
