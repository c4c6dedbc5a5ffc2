"""Ranges of what is measured."""

from __future__ import annotations

import numpy as np
import pytest

from tmconvert.calibration.ranges import METHODS, Histogram


def seen(*arrays: np.ndarray, has_tails: bool = True) -> Histogram:
    histogram = Histogram(has_tails=has_tails)
    for array in arrays:
        histogram.add(array.astype(np.float32))
    return histogram


def error(x: np.ndarray, low: float, high: float) -> float:
    step = (high - low) / 255
    return float(np.mean((np.rint(np.clip(x, low, high) / step) * step - x) ** 2))


@pytest.mark.parametrize("draw", ["laplace", "standard_normal", "exponential"])
def test_little_data_is_no_reason_to_clip_what_comes(draw: str) -> None:
    found = {True: 0.0, False: 0.0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        few, many = (getattr(rng, draw)(size=size) for size in (400, 100_000))
        for has_tails in found:
            ends = METHODS["mse"](seen(few, has_tails=has_tails))
            found[has_tails] += error(many, *ends)
    assert found[True] < (0.8 if draw == "standard_normal" else 0.6) * found[False]


@pytest.mark.parametrize("draw", ["laplace", "standard_normal"])
def test_with_much_data_the_range_is_that_of_least_error(draw: str) -> None:
    x = getattr(np.random.default_rng(0), draw)(size=200_000)
    low, high = METHODS["mse"](seen(x))
    ends = np.linspace(0.2, 1.2, 51)
    least = min(error(x, share * x.min(), share * x.max()) for share in ends)
    assert error(x, low, high) < 1.1 * least


def test_nothing_is_beyond_an_end_that_is_reached_again() -> None:
    arrays = [np.minimum(np.random.default_rng(seed).exponential(size=40), 1) for seed in range(4)]
    assert METHODS["mse"](seen(*arrays))[1] <= 1
    assert METHODS["mse"](seen(*arrays, np.array([1.01])))[1] > 1


def test_ends_that_are_reached_are_counted() -> None:
    histogram = seen(np.array([0.0, 2.0]), np.array([-1.0, 2.0]), np.array([-1.0, 3.0]), np.array([1.0]))
    assert (histogram.reached_low, histogram.reached_high) == (2, 1)
