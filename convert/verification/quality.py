"""How far the outputs of an integer file are from those of the float model: ratio, cosine, best class."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tmconvert.verification.noise import decibels, energies

LEAST_CLASSES = 2


@dataclass
class OutputQuality:
    """Sums over samples for one output.

    ``decibels`` is the ratio of signal to noise, -inf where an element is not finite that should be;
    ``cosine`` that of the angle between all elements of the file and of the float model. ``agreement`` is the
    share of rows whose largest element has the same position in both; None for an output without rows of
    several elements.
    """

    name: str
    signal: float = 0.0
    noise: float = 0.0
    product: float = 0.0
    squares: float = 0.0
    equal: int = 0
    rows: int = 0
    is_ranked: bool = field(default=True)

    def add(self, actual: np.ndarray, expected: np.ndarray) -> None:
        """Adds the arrays of a sample."""
        signal, noise = energies(expected, actual)
        if np.any(np.isfinite(expected) & ~np.isfinite(actual)):
            signal, noise = energies(expected, expected)[0], float("inf")
        self.signal, self.noise = self.signal + signal, self.noise + noise
        one, other = (
            np.nan_to_num(each.astype(np.float64), posinf=0, neginf=0).reshape(-1)
            for each in (actual, expected)
        )
        self.product += float(one @ other)
        self.squares += float(one @ one)
        self.is_ranked &= expected.ndim == 2 and expected.shape[-1] >= LEAST_CLASSES
        if self.is_ranked and expected.size:
            best = [np.argmax(each, axis=-1) for each in (actual, expected)]
            self.equal += int(np.sum(best[0] == best[1]))
            self.rows += best[0].size

    @property
    def decibels(self) -> float:
        return decibels(self.signal, self.noise)

    @property
    def cosine(self) -> float | None:
        length = (self.squares * self.signal) ** 0.5
        return self.product / length if length else None

    @property
    def agreement(self) -> float | None:
        return self.equal / self.rows if self.is_ranked and self.rows else None

    def to_json(self) -> dict[str, object]:
        ratio = self.decibels
        return {
            "name": self.name,
            "decibels": ratio if np.isfinite(ratio) else None,
            "cosine": self.cosine,
            "agreement": self.agreement,
            "rows": self.rows if self.agreement is not None else None,
        }
