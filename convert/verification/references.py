"""References and inputs with which a file is verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tmconvert.verification.reference import Reference


@dataclass(frozen=True)
class References:
    """``references`` are the source at one or two sets of sizes; ``inputs`` are for the first one, in its
    order.

    ``samples`` are inputs on which the layers of an integer file are measured, ``about`` describes them.
    ``notes`` are added to the report. ``uncalibrated`` is a calibrated model as it was before, without
    corrections of its biases, or the float graph of a quantized one; None for others. ``compares_source``
    also compares a float file with what a quantized source computes.
    """

    references: Sequence[Reference]
    inputs: Sequence[np.ndarray] | None
    notes: list[str] = field(default_factory=list)
    samples: Iterable[Sequence[np.ndarray]] | None = None
    about: str = ""
    uncalibrated: Reference | None = None
    compares_source: bool = False
