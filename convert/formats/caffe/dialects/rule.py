"""Rules of dialects: limits on quantities of a layer, as data."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """A limit that a dialect sets.

    ``layers`` are the types to which it applies (empty: all), ``quantity`` a name in
    ``targets/caffe/quantities.py``, which computes the values; each must lie within ``low`` and ``high``, or
    be ``among`` some. A rule with ``fields`` has no quantity: the reader ignores these fields, and a net must
    not set them. ``help`` is the remedy. ``confirmed`` is false for a limit that no document confirms.
    """

    name: str
    quantity: str = ""
    layers: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    among: tuple[float, ...] | None = None
    fields: tuple[str, ...] = ()
    help: str = ""
    confirmed: bool = True

    def allows(self, number: float) -> bool:
        if self.among is not None:
            return any(abs(number - value) < 1e-6 for value in self.among)
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    def limits(self) -> str:
        """``1 to 255``, ``at most 4096``, ``one of 0.5, 1, 2``."""
        if self.among is not None:
            return (
                f"{'one of ' if len(self.among) > 1 else ''}{', '.join(f'{value:g}' for value in self.among)}"
            )
        if self.low is None:
            return f"at most {self.high:g}"
        if self.high is None:
            return f"at least {self.low:g}"
        return f"{self.low:g} to {self.high:g}"
