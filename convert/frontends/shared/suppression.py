"""Non-maximum suppression and reversal of sequences, as file formats define them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.arguments import cast, reshaped
from tmconvert.ir.emitter import Emitter

MOST_BOXES = 2**31 - 1


def kept_boxes(g: Emitter, boxes: Any, scores: Any, threshold: Any, overlap: float, most: Any) -> Any:
    """Returns the int64 indices of at most ``most`` boxes that are kept, the highest score first.

    ``boxes`` [n, 4] have the smaller corner first. Only boxes of a higher score than ``threshold`` count, all
    with None; one that shares more than ``overlap`` of the union with a better one is left out.
    """
    places = None
    if threshold is not None:
        limit = cast(g, reshaped(g, threshold, []), g.type(scores).dtype)
        places = g.call("aten::select", g.call("aten::nonzero", g.call("aten::gt", scores, limit)), 1, 0)
        boxes, scores = (g.call("aten::index_select", each, 0, places) for each in (boxes, scores))
    kept = g.call("torchvision::nms", boxes, scores, overlap)
    kept = g.call("aten::slice", kept, 0, 0, min(most, MOST_BOXES), 1)
    return kept if places is None else g.call("aten::index_select", cast(g, places, np.int64), 0, kept)


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
