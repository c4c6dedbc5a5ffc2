"""Suppression of overlapping boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import cast, static_int
from tmconvert.frontends.shared.suppression import kept_boxes, ordered_corners
from tmconvert.frontends.tflite.adapters.values import PREFIX, check_rank, scalar
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)


@OPERATORS.add("NON_MAX_SUPPRESSION_V4")
def non_max_suppression_v4(g, boxes, scores, most, overlap, threshold):
    """Returns the indices of the boxes that are kept, filled up with 0, and how many these are."""
    indices, count, _ = _suppressed(g, boxes, scores, most, overlap, threshold)
    return [indices, count]


@OPERATORS.add("NON_MAX_SUPPRESSION_V5")
def non_max_suppression_v5(g, boxes, scores, most, overlap, threshold, sigma):
    """Returns the scores of the boxes, too."""
    if scalar(g, sigma, "the sigma of soft suppression") != 0:
        raise Refusal("soft suppression of boxes is not supported", "convert the model with soft_nms_sigma 0")
    indices, count, is_kept = _suppressed(g, boxes, scores, most, overlap, threshold)
    picked = g.call("aten::index_select", scores, 0, indices)
    zero = g.constant(np.zeros((), g.type(scores).dtype))
    return [indices, g.call("aten::where", is_kept, picked, zero), count]


def _suppressed(g: Emitter, boxes, scores, most, overlap, threshold) -> tuple[Any, Any, Any]:
    """Returns the padded indices of boxes, the number of boxes, and where the indices are not padding."""
    check_rank(g, boxes, 2)
    number = static_int(g, most, "the size of an image")
    kept = kept_boxes(g, ordered_corners(g, boxes), scores, threshold, at_least(g, overlap), number)
    count = g.type(kept).shape[0]
    padded = g.call("aten::pad", kept, [0, number - count], "constant", -1)
    is_kept = g.call("aten::ge", padded, g.constant(0, np.int64))
    total = g.call("aten::sum", cast(g, is_kept, np.int32), [0], False)
    indices = g.call("aten::clamp", padded, min=0)
    return cast(g, indices, np.int32), cast(g, total, np.int32), is_kept


def at_least(g: Emitter, overlap: Any) -> float:
    """Returns the number above which a float32 is at least the threshold: LiteRT leaves out equal shares."""
    share = np.float32(scalar(g, overlap, "the IoU threshold"))
    return float(np.nextafter(share, np.float32(-1)))
