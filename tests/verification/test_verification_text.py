"""The printed form of a Verification."""

from __future__ import annotations

from tmconvert.verification.compare import Comparison
from tmconvert.verification.histograms import ChannelHistogram
from tmconvert.verification.noise import Noise
from tmconvert.verification.verify import Verification


def test_a_verification_prints_no_arrays() -> None:
    histogram = ChannelHistogram.__new__(ChannelHistogram)
    noise = tuple(Noise(f"n{i}", "conv", 40.0, 30.0, 0.0, 1.0, 0.1, histogram=histogram) for i in range(50))
    compared = (Comparison("y", 1e-6, 1e-4, (1, 2), (1, 2)),)
    text = repr(Verification("ONNX Runtime", compared, noise))
    assert text == "Verification(runtime='ONNX Runtime', outputs=['y'], max_error=1e-06)"
