"""Raw operators (``Apply`` in MegEngine) on images, converted by the adapters of their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import boxes, sampling, vision
from tmconvert.frontends.megengine.adapters.values import static_ints
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter

OPERATORS = Table("opdef.")


def channels_first(format_, wanted: str = "NCHW") -> None:
    if str(format_).upper() != wanted:
        raise Refusal(f"the format {format_} is not supported", f"use {wanted}")


def in_format(g: Emitter, inp, format_, call: Callable[[Any], Any]) -> Any:
    """Emits ``call`` on an image in NCHW, and converts the result to the format of ``inp``."""
    if str(format_).upper() != "NHWC":
        channels_first(format_)
        return call(inp)
    return g.call("aten::permute", call(g.call("aten::permute", inp, [0, 3, 1, 2])), [0, 2, 3, 1])


@OPERATORS.add("Resize")
def resize(g, inp, size, *, format, imode):
    modes = {"LINEAR": "bilinear", "CUBIC": "bicubic", "NEAREST": "nearest"}
    name = modes.get(str(imode).upper(), str(imode))
    if str(format).upper() == "NHWC":
        sampling.check_channels_last(g, inp, name)
    return in_format(g, inp, format, lambda image: vision.interpolate(g, image, size, mode=name))


@OPERATORS.add("Resize3D")
def resize3d(g, inp, size, *, format, imode, align_corners=False):
    channels_first(format, "NCDHW")
    if str(imode).upper() != "LINEAR":
        raise Refusal(f"the interpolation mode {imode!r} is not supported")
    return vision.interpolate(g, inp, size, mode="trilinear", align_corners=align_corners)


@OPERATORS.add("Remap")
def remap(g, inp, places, *, border_type, scalar, format, imode):
    return in_format(
        g, inp, format, lambda image: sampling.remap(g, image, places, border_type, scalar, imode)
    )


@OPERATORS.add("WarpAffine")
def warp_affine(g, inp, mat, size, *, border_mode, border_val, format, imode):
    return sampling.warp_affine(g, inp, mat, size, border_mode, border_val, format, imode)


@OPERATORS.add("WarpPerspective")
def warp_perspective(g, inp, mat, *others, bmode, border_val, format, imode):
    """``others`` are the size, or the image index for each matrix and the size."""
    *batch, size = others
    where = batch[0] if batch else None
    return sampling.warp_perspective(g, inp, mat, size, where, bmode, border_val, format, imode)


@OPERATORS.add("ROIAlign")
def roi_align(g, inp, rois, *, mode, spatial_scale, offset, **state):
    """RoI align; the second result, indices of maxima, is used in training only."""
    channels_first(state.get("format", "NCHW"))
    if offset not in (0, 0.5):
        raise Refusal(f"roi_align with the offset {offset} is not supported", "use 0 or 0.5")
    size, samples = (
        [state[f"{name}_{axis}"] for axis in ("height", "width")] for name in ("pooled", "sample")
    )
    return [sampling.roi_align(g, inp, rois, size, mode, spatial_scale, samples, offset == 0.5), None]


@OPERATORS.add("ROIPooling")
def roi_pooling(g, inp, rois, size, *, mode, scale):
    """RoI pooling; the second result, indices of maxima, is used in training only."""
    return [boxes.roi_pooling(g, inp, rois, static_ints(g, size), mode, scale), None]


OPERATORS.add("CvtColor")(lambda g, inp, *, mode: sampling.cvt_color(g, inp, mode))
