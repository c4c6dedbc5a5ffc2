"""Constants that differ from frame to frame: at both ends of a stream, in a period, or by the same amount."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tmconvert.ir import TensorNode
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.timed import Timed

LONGEST_PERIOD = 4096


class Pattern(NamedTuple):
    """Values of frames: ``first`` ones, then ``period`` ones again and again, and ``last`` ones."""

    first: int
    period: int
    last: int


def pattern_of(values: np.ndarray) -> Pattern | None:
    """Returns the pattern along the last axis; None where less than half of the frames repeat.

    >>> pattern_of(np.array([1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 9]))
    Pattern(first=2, period=2, last=1)
    """
    rows, frames = values.reshape(-1, values.shape[-1]), values.shape[-1]
    for period in range(1, min(frames // 4, LONGEST_PERIOD) + 1):
        is_equal = np.isclose(rows[:, period:], rows[:, :-period], rtol=1e-5, atol=1e-7).all(0)
        middle = (frames - period) // 2
        before, after = np.flatnonzero(~is_equal[:middle]), np.flatnonzero(~is_equal[middle:])
        first = int(before[-1]) + 1 if before.size else 0
        last = int(is_equal.size - middle - after[0]) if after.size else 0
        if is_equal[middle] and first + last <= frames // 2 and frames - first - last >= 3 * period:
            return Pattern(first, period, last)
    return None


def frame_constant(b: StepBuilder, value: np.ndarray, axis: int, x: Timed) -> Timed | None:
    """Returns the values for the frames of ``x`` in a chunk, if it is late enough for the last ones."""
    made = pattern_of(np.moveaxis(value, axis, -1))
    if made is None:
        return _progression(b, value, axis, x)
    if x.delay < made.last:
        return None
    frames, parts = value.shape[axis], (made.first + made.period, made.last)
    kept = [*range(parts[0]), *range(frames - made.last, frames)]
    table = b.emitter.constant(np.ascontiguousarray(value.take(kept, axis)))
    b.counts_on = b.counts_on or made.period > 1
    place = b.emit("aten::add", b.first(x), b.numbers(0, x.frames))
    repeated = b.emit("aten::sub", place, b.int32([made.first]))
    repeated = b.emit("aten::remainder", repeated, b.int32([made.period]))
    repeated = b.emit("aten::add", repeated, b.int32([made.first]))
    index = b.emit("aten::where", b.emit("aten::lt", place, b.int32([made.first])), place, repeated)
    if made.last:
        left = b.emit("aten::sub", place, b.length(x.length))  # -1 for the last frame
        is_last = b.emit("aten::ge", left, b.int32([-made.last]))
        is_last = b.emit("aten::logical_and", is_last, b.emit("aten::gt", b.end, b.int32([0])))
        from_end = b.emit("aten::add", left, b.int32([len(kept)]))
        index = b.emit("aten::where", is_last, from_end, index)
    index = b.emit("aten::clamp", index, min=0, max=len(kept) - 1)
    node: TensorNode = b.emit("aten::index_select", table, dim=axis, index=index)
    return Timed(node, axis, x.frames, x.delay, x.length)


def _progression(b: StepBuilder, value: np.ndarray, axis: int, x: Timed) -> Timed | None:
    """Returns values that grow by the same amount from frame to frame, such as the number of a frame."""
    frames, first, second = value.shape[axis], value.take([0], axis), value.take([1], axis)
    numbers = np.arange(frames).reshape([frames if i == axis else 1 for i in range(value.ndim)])
    if frames < 4 or value.dtype.kind not in "iuf":
        return None
    low, high = (np.asarray(each, np.float64) for each in (first, value.take([-1], axis)))
    growth = (high - low) / (frames - 1) if value.dtype.kind == "f" else second - first
    growth = np.asarray(growth, value.dtype)
    if not np.allclose(first + growth * numbers, value, rtol=1e-6, atol=0):
        return None
    b.counts_on = True
    place = b.emit("aten::add", b.first(x), b.numbers(0, x.frames))
    place = b.emit("aten::to", place, dtype=value.dtype.name)
    place = b.emit("aten::reshape", place, [x.frames if i == axis else 1 for i in range(value.ndim)])
    grown = b.emit("aten::mul", place, b.emitter.constant(growth))
    node = b.emit("aten::add", grown, b.emitter.constant(first))
    return Timed(node, axis, x.frames, x.delay, x.length)


def last_frames(value: np.ndarray, axis: int) -> int:
    """Returns how many frames at the end have values of their own."""
    made = pattern_of(np.moveaxis(value, axis, -1))
    return 0 if made is None else made.last
