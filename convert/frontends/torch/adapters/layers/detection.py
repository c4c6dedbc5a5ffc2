"""torchvision's operators: boxes, regions of interest, deformable convolution."""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table

ATEN, FUNCTIONS = Table("torchvision::"), Table("torchvision.")


@FUNCTIONS.add("ops.boxes.batched_nms")
def batched_nms(g, boxes, scores, idxs, iou_threshold):
    return g.call("torchvision::batched_nms", boxes, scores, idxs, iou_threshold)


@ATEN.add("roi_align")
def roi_align(g, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    size = [pooled_height, pooled_width]
    return g.call("torchvision::roi_align", input, rois, size, spatial_scale, sampling_ratio, aligned)


@ATEN.add("ps_roi_align")
def ps_roi_align(g, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """Position-sensitive RoI align; its second result, the channel mapping, is used by gradients only."""
    size = [pooled_height, pooled_width]
    return g.call("torchvision::ps_roi_align", input, rois, size, spatial_scale, sampling_ratio), None


@ATEN.add("roi_pool")
def roi_pool(g, input, rois, spatial_scale, pooled_height, pooled_width):
    return g.call("torchvision::roi_pool", input, rois, [pooled_height, pooled_width], spatial_scale), None


@ATEN.add("ps_roi_pool")
def ps_roi_pool(g, *args):
    raise Refusal("ps_roi_pool is not supported", "use ps_roi_align")


@ATEN.add("deform_conv2d")
def deform_conv2d(
    g, input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
    offset_groups, use_mask,
):  # fmt: skip
    """Deformable convolution; the group counts follow from the shapes."""
    windows = ([stride_h, stride_w], [pad_h, pad_w], [dilation_h, dilation_w])
    mask = mask if use_mask else None
    return g.call("torchvision::deform_conv2d", input, weight, offset, mask, bias, *windows)
