"""torchvision's operators: boxes, regions of interest, deformable convolution."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import AdapterValue, Table
from tmconvert.ir.emitter import Emitter

ATEN, FUNCTIONS = Table("torchvision::"), Table("torchvision.")


@FUNCTIONS.add("ops.boxes.batched_nms")
def batched_nms(
    g: Emitter, boxes: AdapterValue, scores: AdapterValue, idxs: AdapterValue, iou_threshold: float
) -> Any:
    return g.call("torchvision::batched_nms", boxes, scores, idxs, iou_threshold)


@ATEN.add("roi_align")
def roi_align(
    g: Emitter,
    input: AdapterValue,
    rois: AdapterValue,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    size = [pooled_height, pooled_width]
    return g.call("torchvision::roi_align", input, rois, size, spatial_scale, sampling_ratio, aligned)


@ATEN.add("ps_roi_align")
def ps_roi_align(
    g: Emitter,
    input: AdapterValue,
    rois: AdapterValue,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> Any:
    """Position-sensitive RoI align; its second result, the channel mapping, is used by gradients only."""
    size = [pooled_height, pooled_width]
    return g.call("torchvision::ps_roi_align", input, rois, size, spatial_scale, sampling_ratio), None


@ATEN.add("roi_pool")
def roi_pool(
    g: Emitter,
    input: AdapterValue,
    rois: AdapterValue,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> Any:
    return g.call("torchvision::roi_pool", input, rois, [pooled_height, pooled_width], spatial_scale), None


@ATEN.add("ps_roi_pool")
def ps_roi_pool(g: Emitter, *args: AdapterValue) -> Any:
    raise Refusal("ps_roi_pool is not supported", "use ps_roi_align")


@ATEN.add("deform_conv2d")
def deform_conv2d(
    g: Emitter,
    input: AdapterValue,
    weight: AdapterValue,
    offset: AdapterValue,
    mask: AdapterValue,
    bias: AdapterValue,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Any:
    """Deformable convolution; the group counts follow from the shapes."""
    windows = ([stride_h, stride_w], [pad_h, pad_w], [dilation_h, dilation_w])
    mask = mask if use_mask else None
    return g.call("torchvision::deform_conv2d", input, weight, offset, mask, bias, *windows)
