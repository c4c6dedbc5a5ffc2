"""References and inputs with which a file is verified."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tmconvert.verification.reference import ALLOWANCE, Reference

FACTOR = 3.0  # times the conversion, of the processor time that verification may take


@dataclass
class Budget:
    """Seconds of processor time from now on; infinite by default.

    The first comparison is always made. ``left_out`` lists what was not done for want of time.
    """

    seconds: float = math.inf
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deadline = time.process_time() + self.seconds

    def limit(self, conversion: float) -> None:
        """Limits the time, after a conversion that took so many seconds."""
        self.seconds = FACTOR * conversion + ALLOWANCE
        self.deadline = time.process_time() + self.seconds

    def spend(self, seconds: float) -> None:
        """Takes the time of another process from the budget."""
        self.deadline -= seconds

    def allows(self, what: str) -> bool:
        """Whether there is time left; if not, ``what`` is left out."""
        if time.process_time() <= self.deadline:
            return True
        self.left_out.extend([what] * (what not in self.left_out))
        return False

    def notes(self) -> list[str]:
        """Returns a note on what was left out, if anything."""
        if not self.left_out:
            return []
        return [
            f"verification took {self.seconds:.0f} s of processor time, and left out "
            f"{', '.join(self.left_out)}: --verify full (verification='full') sets no limit"
        ]


@dataclass(frozen=True)
class References:
    """``references`` are the source at one or two sets of sizes; ``inputs`` are for the first one, in its
    order.

    ``samples`` are inputs on which the layers of an integer file are measured, ``about`` describes them.
    ``notes`` are added to the report. ``uncalibrated`` is a calibrated model as it was before, without
    corrections of its biases, or the float graph of a quantized one; None for others. ``compares_source``
    also compares a float file with what a quantized source computes. ``budget`` limits what is run beyond
    the first comparison.
    """

    references: Sequence[Reference]
    inputs: Sequence[np.ndarray] | None
    notes: list[str] = field(default_factory=list)
    samples: Iterable[Sequence[np.ndarray]] | None = None
    about: str = ""
    uncalibrated: Reference | None = None
    compares_source: bool = False
    budget: Budget = field(default_factory=Budget)
