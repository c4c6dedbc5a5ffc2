"""The tensors of a written file in one run, as the numbers that their integers stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Observed:
    """A tensor: float32 numbers (or integers that are no steps), the step between two, and their range.

    ``step`` is 0 for what is on no grid.
    """

    array: np.ndarray
    step: float = 0.0
    low: float = -math.inf
    high: float = math.inf

    @property
    def kind(self) -> str:
        """The type of its integers in TFLite; empty for what is on no grid."""
        return "" if not self.step else "int8" if self.high - self.low < 256 * self.step else "int16"
