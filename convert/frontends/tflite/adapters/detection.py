"""Suppression of overlapping boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import cast, reshaped, static_int
from tmconvert.frontends.shared.suppression import kept_boxes, ordered_corners
from tmconvert.frontends.tflite.adapters.values import PREFIX, check_rank, scalar
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

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
    return _padded(g, kept, number)


def _padded(g: Emitter, kept, number: int) -> tuple[Any, Any, Any]:
    """Returns ``number`` indices, how many of them are not padding, and which."""
    count = g.type(kept).shape[0]
    padded = g.call("aten::pad", kept, [0, number - count], "constant", -1)
    is_kept = g.call("aten::ge", padded, g.constant(0, np.int64))
    total = g.call("aten::sum", cast(g, is_kept, np.int32), [0], False)
    indices = g.call("aten::clamp", padded, min=0)
    return cast(g, indices, np.int32), cast(g, total, np.int32), is_kept


@OPERATORS.add("custom.TFLite_Detection_PostProcess")
def detection_postprocess(
    g, boxes, scores, anchors,
    *, max_detections, max_classes_per_detection, num_classes, nms_score_threshold, nms_iou_threshold,
    y_scale, x_scale, h_scale, w_scale, use_regular_nms,
):  # fmt: skip
    """Returns boxes, classes and scores of the best detections, filled up with 0, and how many these are.

    Each box has its best class; boxes of all classes suppress each other.
    """
    if use_regular_nms or max_classes_per_detection != 1:
        raise Refusal(
            "TFLite_Detection_PostProcess with suppression of each class, or several classes of a box",
            "export the model with use_regular_nms false and max_classes_per_detection 1",
        )
    count, total = g.type(anchors).shape[0], g.type(scores).shape[2]
    if min(max_detections, num_classes) < 1 or total - num_classes not in (0, 1):
        raise Refusal(f"{max_detections} detections of {num_classes} classes do not fit {g.type(scores)}")
    corners = _decoded(g, boxes, anchors, [(y_scale, h_scale), (x_scale, w_scale)])
    marks = g.call("aten::slice", reshaped(g, scores, [count, total]), 1, total - num_classes, total, 1)
    best = g.call("aten::amax", marks, [1], False)
    least = g.constant(np.nextafter(np.float32(nms_score_threshold), np.float32(-np.inf)))
    kept = kept_boxes(g, corners, best, least, float(np.float32(nms_iou_threshold)), max_detections)
    indices, found, is_kept = _padded(g, kept, max_detections)
    labels = cast(g, g.call("aten::argmax", marks, 1, False), np.float32)
    made = []
    for values, shape in ((corners, [4]), (labels, []), (best, [])):
        picked = reshaped(g, g.call("aten::index_select", values, 0, indices), [1, max_detections, *shape])
        mask = reshaped(g, is_kept, [1, max_detections, *[1] * len(shape)])
        made.append(g.call("aten::where", mask, picked, g.constant(0, np.float32)))
    return [*made, reshaped(g, cast(g, found, np.float32), [1])]


def _decoded(g: Emitter, boxes, anchors, scales: list[tuple[float, float]]) -> Any:
    """Returns the corners [count, 4] of boxes that are offsets from anchors: y, x, height and width."""
    count = g.type(anchors).shape[0]
    offsets = reshaped(g, boxes, [count, g.type(boxes).shape[2]])
    low, high = [], []
    for axis, (of_centre, of_size) in enumerate(scales):
        offset, growth, centre, size = (
            Term(g, g.call("aten::slice", each, 1, place, place + 1, 1))
            for each in (offsets, anchors)
            for place in (axis, axis + 2)
        )
        middle = offset / of_centre * size + centre
        half = (growth / of_size).exp() * 0.5 * size
        low.append((middle - half).value)
        high.append((middle + half).value)
    return g.call("aten::cat", [*low, *high], 1)


def at_least(g: Emitter, overlap: Any) -> float:
    """Returns the number above which a float32 is at least the threshold: LiteRT leaves out equal shares."""
    share = np.float32(scalar(g, overlap, "the IoU threshold"))
    return float(np.nextafter(share, np.float32(-1)))
