"""Non-maximum suppression and reversal of sequences, as file formats define them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.arguments import cast, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.ops.sampling.nms import kept_boxes

__all__ = ["MOST_BOXES", "kept_boxes", "ordered_corners", "reversed_sequences"]

MOST_BOXES = 2**31 - 1


def ordered_corners(g: Emitter, boxes: object) -> Any:
    """Returns boxes [..., 4] of any two opposite corners with the smaller coordinates first."""
    axis = g.type(boxes).rank - 1
    first, second = (g.call("aten::slice", boxes, axis, start, start + 2, 1) for start in (0, 2))
    low, high = g.call("aten::minimum", first, second), g.call("aten::maximum", first, second)
    return g.call("aten::cat", [low, high], axis)


def reversed_sequences(g: Emitter, x: object, lengths: object, time: int, batch: int) -> Any:
    """Reverses the first ``lengths[i]`` elements along axis ``time`` of sequence ``i``."""
    shape = list(g.type(x).shape)

    def along(values: object, axis: int) -> Any:
        return reshaped(g, values, [-1 if each == axis else 1 for each in range(len(shape))])

    steps = along(g.call("aten::arange", 0, shape[time], 1), time)
    ends = along(cast(g, lengths, np.int64), batch)
    mirrored = g.call("aten::sub", g.call("aten::sub", ends, g.constant(1, np.int64)), steps)
    places = g.call("aten::where", g.call("aten::lt", steps, ends), mirrored, steps)
    return g.call("aten::gather", x, time, g.call("aten::expand", places, shape))
