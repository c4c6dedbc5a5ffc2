"""Dequantized tensors of one run of a written file."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Observed(NamedTuple):
    """A tensor: float32 values (or plain integers), scale, and real range; ``step`` is 0 without QParams."""

    array: np.ndarray
    step: float = 0.0
    low: float = -math.inf
    high: float = math.inf

    @property
    def kind(self) -> str:
        """Returns the integer type in TFLite; empty for tensors without QParams."""
        return "" if not self.step else "int8" if self.high - self.low < 256 * self.step else "int16"
