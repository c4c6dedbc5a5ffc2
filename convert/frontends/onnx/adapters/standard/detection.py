"""Sampling at computed positions, regions of interest, and suppression of overlapping boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import cast, like, rank, reshaped, scalar, static_ints
from tmconvert.frontends.shared.suppression import kept_boxes, ordered_corners
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim

OPERATORS = OperatorTable()
MOST_CLASSES = 256  # of which the boxes are written one after the other
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
    g,
    X,
    rois,
    batch_indices,
    *,
    coordinate_transformation_mode="half_pixel",
    mode="avg",
    output_height=1,
    output_width=1,
    sampling_ratio=0,
    spatial_scale=1.0,
):
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
    g,
    boxes,
    scores,
    max_output_boxes_per_class=None,
    iou_threshold=None,
    score_threshold=None,
    *,
    center_point_box=0,
):
    """Returns rows of (picture, class, box) for the boxes of each class, the best first."""
    most = (
        0
        if max_output_boxes_per_class is None
        else scalar(g, max_output_boxes_per_class, "a number of boxes")
    )
    overlap = 0.0 if iou_threshold is None else float(scalar(g, iou_threshold, "the IoU threshold"))
    pictures, classes, _ = g.type(scores).shape
    if isinstance(pictures, Dim) or isinstance(classes, Dim) or pictures * classes > MOST_CLASSES:
        raise Refusal(f"NonMaxSuppression of {pictures} pictures and {classes} classes is not supported")
    if most <= 0:
        return g.constant(np.zeros((0, 3), np.int64))
    corners = _corners(g, boxes, bool(center_point_box))
    rows = []
    for picture in range(pictures):
        own = g.call("aten::select", corners, 0, picture)
        marks = g.call("aten::select", scores, 0, picture)
        for number in range(classes):
            mark = g.call("aten::select", marks, 0, number)
            chosen = kept_boxes(g, own, mark, score_threshold, overlap, most)
            count = g.type(chosen).shape
            labels = [g.call("aten::expand", g.constant(each), list(count)) for each in (picture, number)]
            rows.append(g.call("aten::cat", [reshaped(g, each, [-1, 1]) for each in (*labels, chosen)], 1))
    return rows[0] if len(rows) == 1 else g.call("aten::cat", rows, 0)


def _corners(g: Emitter, boxes, is_centre: bool) -> Any:
    """Returns boxes as two opposite corners, the smaller coordinates first."""
    if not is_centre:
        return ordered_corners(g, boxes)
    first, second = (g.call("aten::slice", boxes, 2, start, start + 2, 1) for start in (0, 2))
    half = g.call("aten::mul", second, like(g, second, 0.5))
    return g.call("aten::cat", [g.call("aten::sub", first, half), g.call("aten::add", first, half)], 2)
