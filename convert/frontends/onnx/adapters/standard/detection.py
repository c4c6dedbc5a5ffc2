"""Sampling at computed positions, regions of interest, and suppression of overlapping boxes."""

from __future__ import annotations

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import cast, rank, reshaped, scalar, static_ints
from tmconvert.frontends.shared.suppression import MOST_BOXES

OPERATORS = OperatorTable()
_MODES = {"bilinear": 0, "linear": 0, "nearest": 1, "bicubic": 2, "cubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


@OPERATORS.add("GridSample")
def grid_sample(g, X, grid, *, align_corners=0, mode="bilinear", padding_mode="zeros"):
    if mode not in _MODES or padding_mode not in _PADDINGS or rank(g, X) not in (4, 5):
        raise Refusal(f"GridSample in mode {mode!r}, {padding_mode!r} of a tensor of rank {rank(g, X)}")
    op = "aten::grid_sampler" if rank(g, X) == 4 else "aten::grid_sampler_3d"
    grid = cast(g, grid, g.type(X).dtype)
    return g.call(op, X, grid, _MODES[mode], _PADDINGS[padding_mode], bool(align_corners))


@OPERATORS.add("AffineGrid")
def affine_grid(g, theta, size, *, align_corners=0):
    sizes = static_ints(g, size, "the size of AffineGrid")
    return g.call("aten::affine_grid_generator", theta, sizes, bool(align_corners))


@OPERATORS.add("RoiAlign", since=16)
def roi_align(
    g, X, rois, batch_indices,
    *, coordinate_transformation_mode="half_pixel", mode="avg", output_height=1, output_width=1,
    sampling_ratio=0, spatial_scale=1.0,
):  # fmt: skip
    if mode != "avg":
        raise Refusal(f"RoiAlign in mode {mode!r} is not supported", "use mode='avg'")
    boxes = _with_batch(g, X, rois, batch_indices)
    is_aligned = coordinate_transformation_mode == "half_pixel"
    values = ([output_height, output_width], spatial_scale, sampling_ratio or -1, is_aligned)
    return g.call("torchvision::roi_align", X, boxes, *values)


@OPERATORS.add("RoiAlign")
def roi_align10(g, X, rois, batch_indices, **attributes):
    transform = "output_half_pixel"
    return roi_align(g, X, rois, batch_indices, coordinate_transformation_mode=transform, **attributes)


def _with_batch(g, x, rois, numbers):
    """Returns boxes with the index of their image before each, as torchvision has them."""
    dtype = g.type(x).dtype
    column = reshaped(g, cast(g, numbers, dtype), [g.type(rois).shape[0], 1])
    return g.call("aten::cat", [column, cast(g, rois, dtype)], 1)


@OPERATORS.add("MaxRoiPool")
def max_roi_pool(g, X, rois, *, pooled_shape, spatial_scale=1.0):
    return g.call("torchvision::roi_pool", X, rois, list(pooled_shape), spatial_scale)


@OPERATORS.add("NonMaxSuppression")
def non_max_suppression(
    g, boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None,
    *, center_point_box=0,
):  # fmt: skip
    """Returns rows of (picture, class, box) for the boxes of each class, the best first."""
    most = (
        0
        if max_output_boxes_per_class is None
        else scalar(g, max_output_boxes_per_class, "a number of boxes")
    )
    overlap = 0.0 if iou_threshold is None else float(scalar(g, iou_threshold, "the IoU threshold"))
    if most <= 0:
        return g.constant(np.zeros((0, 3), np.int64))
    is_centre = bool(center_point_box)
    threshold = None if score_threshold is None else scalar(g, score_threshold, "the threshold of scores")
    return g.call("tm::nms_of_classes", boxes, scores, min(most, MOST_BOXES), overlap, threshold, is_centre)
