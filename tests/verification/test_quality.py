"""How far the outputs of an integer file are from those of the float model."""

from __future__ import annotations

import numpy as np
import pytest

from tmconvert.verification.quality import OutputQuality


def test_the_ratio_of_two_samples() -> None:
    quality = OutputQuality("y")
    for signal, noise in ((3.0, 0.1), (4.0, 0.2)):
        quality.add(np.full((2, 5), signal + noise), np.full((2, 5), signal))
    assert quality.decibels == pytest.approx(10 * np.log10(25 / 0.05))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_an_element_that_is_not_finite_is_all_noise(wrong: float) -> None:
    quality = OutputQuality("y")
    expected = np.array([[1.0, 2.0]], np.float32)
    quality.add(np.array([[1.0, wrong]], np.float32), expected)
    quality.add(expected, expected)
    assert quality.signal == 10
    assert quality.decibels == -np.inf
    assert quality.to_json()["decibels"] is None


def test_infinity_that_is_expected_is_no_noise() -> None:
    quality = OutputQuality("y")
    quality.add(np.array([1.0, np.inf]), np.array([1.0, np.inf]))
    assert quality.decibels == np.inf
