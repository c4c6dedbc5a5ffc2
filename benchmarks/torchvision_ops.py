"""Makes torchvision importable where its compiled operators do not load: declares them, in Python.

from torchvision_ops import declare
declare()
import torchvision
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

import torch

SCHEMAS = """
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, bool aligned) -> Tensor
qroi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, bool aligned) -> Tensor
roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width) -> (Tensor, Tensor)
ps_roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio) -> (Tensor, Tensor)
ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width) -> (Tensor, Tensor)
deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask) -> Tensor
"""  # noqa: E501


@functools.cache
def declare() -> None:
    """Declares torchvision's operators once, unless they load."""
    try:
        importlib.import_module("torchvision")
        return
    except RuntimeError:  # an operator does not exist
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS.strip().splitlines():
        library.define(schema)
    for kernel in (nms, roi_align, deform_conv2d):
        library.impl(kernel.__name__, kernel, "CPU")
    _kept.append(library)
    importlib.import_module("torchvision")
    for name in ("extension", "ops.roi_align", "ops.deform_conv"):
        sys.modules[f"torchvision.{name}"]._has_ops = lambda: True  # type: ignore[attr-defined]


_kept: list[Any] = []


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Indices of boxes that overlap no better one by more than the threshold, the best first."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order, kept = scores.sort(descending=True, stable=True).indices, []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        low, high = boxes[order, :2].maximum(boxes[best, :2]), boxes[order, 2:].minimum(boxes[best, 2:])
        common = (high - low).clamp(min=0).prod(1)
        overlap = common / (areas[best] + areas[order] - common)  # NaN for boxes without area, which stay
        order = order[~(overlap > iou_threshold)]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.int64)


def roi_align(
    x: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    """As the operator's kernel: what torchvision has in Python for it counts samples beyond the edge."""
    parts = []
    for roi in rois:
        left, top, right, bottom = roi[1:] * spatial_scale - (0.5 if aligned else 0)
        rows = _samples(top, bottom, pooled_height, sampling_ratio, aligned, x.shape[2])
        columns = _samples(left, right, pooled_width, sampling_ratio, aligned, x.shape[3])
        parts.append(rows @ x[int(roi[0])] @ columns.T)
    return torch.stack(parts) if parts else x.new_zeros(0, x.shape[1], pooled_height, pooled_width)


def _samples(
    start: torch.Tensor, end: torch.Tensor, bins: int, ratio: int, aligned: bool, extent: int
) -> torch.Tensor:
    """[bins, extent]: how much of each element of an axis is in the mean of a bin's samples."""
    length = end - start if aligned else (end - start).clamp(min=1)
    count = ratio if ratio > 0 else int(torch.ceil(length / bins))
    places = start + (torch.arange(bins * max(count, 0)) + 0.5) * (length / (bins * max(count, 1)))
    is_near = (places >= -1) & (places <= extent)
    gap = places.clamp(0, extent - 1)[:, None] - torch.arange(extent)
    weights = (1 - gap.abs()).clamp(min=0) * is_near[:, None]
    return weights.reshape(bins, -1, extent).sum(1) / max(count, 1)


def deform_conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor,
    bias: torch.Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> torch.Tensor:
    """Each tap of a window samples the image at its place plus an offset, times a mask."""
    (batch, channels, height, width), (outputs, _, rows, columns) = x.shape, weight.shape
    down, across = offset.shape[2:]
    taps = rows * columns
    offset = offset.reshape(batch, offset_groups, taps, 2, down, across)
    top = torch.arange(rows).repeat_interleave(columns).reshape(taps, 1, 1) * dilation_h - pad_h
    left = torch.arange(columns).repeat(rows).reshape(taps, 1, 1) * dilation_w - pad_w
    y = offset[:, :, :, 0] + top + torch.arange(down).reshape(down, 1) * stride_h
    z = offset[:, :, :, 1] + left + torch.arange(across) * stride_w
    grid = torch.stack([(2 * z + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    images = x.reshape(batch * offset_groups, -1, height, width)
    places = grid.reshape(batch * offset_groups, taps * down, across, 2)
    found = torch.nn.functional.grid_sample(images, places, align_corners=False)
    found = found.reshape(batch, offset_groups, -1, taps, down, across)
    if use_mask:
        found = found * mask.reshape(batch, offset_groups, 1, taps, down, across)
    found = found.reshape(batch, groups, channels // groups * taps, down * across)
    matrix = weight.reshape(groups, outputs // groups, -1)
    result = torch.einsum("gok,bgkp->bgop", matrix, found).reshape(batch, outputs, down, across)
    return result + bias.reshape(-1, 1, 1)
