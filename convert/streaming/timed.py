"""Tensors of a step model: their axes of time, delays, frames in a chunk and lengths."""

from __future__ import annotations

from typing import NamedTuple

from tmconvert.ir import TensorNode
from tmconvert.ir.symbolic.dims import Size


class Length(NamedTuple):
    """The number of frames of a tensor in a whole stream, as a function of that of the input.

    Each step (before, multiplier, divisor, after) turns n into ``(n + before) * multiplier // divisor +
    after``.
    """

    steps: tuple[tuple[int, int, int, int], ...] = ()

    def then(self, before: int = 0, multiplier: int = 1, divisor: int = 1, after: int = 0) -> Length:
        """Returns the length after one more operation."""
        if multiplier == divisor == 1:
            amount = before + after
            if not amount:
                return self
            if self.steps:
                first = self.steps[-1]
                return Length((*self.steps[:-1], (*first[:3], first[3] + amount)))
            return Length(((amount, 1, 1, 0),))
        return Length((*self.steps, (before, multiplier, divisor, after)))

    def of(self, frames: int) -> int:
        """Returns the length for a number of frames of the input."""
        for before, multiplier, divisor, after in self.steps:
            frames = (frames + before) * multiplier // divisor + after
        return frames


class Timed(NamedTuple):
    """A tensor in a step model.

    In step t, frame i of ``node`` along ``axis`` is frame ``t * frames + i - delay`` of the offline tensor;
    before frame 0 and from frame ``length`` on the values are arbitrary, or zeros where ``is_clean``. A
    negative delay is left by padding at the start: the first frames, which are zeros, are not in any chunk.
    """

    node: TensorNode
    axis: int
    frames: Size
    delay: int = 0
    length: Length = Length()
    is_clean: bool = False


class FirstFrame(NamedTuple):
    """The first frame of a stream, without the axis of time: a loop over time may start with it."""

    of: Timed
