"""megengine.functional.vision."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import cast, static_ints
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.resizing import nearest_places

FUNCTIONS = Table("megengine.functional.vision.")

MAX_SCALE = 1 << 31
MAX_DENOMINATOR = 1 << 10
MAX_STEPS = 8  # of float32, by which a ratio may be off


# mode: (axes, op)
RESIZES = {
    "nearest": (2, "aten::upsample_nearest2d"),
    "linear": (1, "aten::upsample_linear1d"),
    "bilinear": (2, "aten::upsample_bilinear2d"),
    "bicubic": (2, "aten::upsample_bicubic2d"),
    "trilinear": (3, "aten::upsample_trilinear3d"),
}


@FUNCTIONS.add("interpolate")
def interpolate(g, inp, size=None, scale_factor=None, mode="bilinear", align_corners=None):
    """Float16 inputs are computed and returned in float32; bytes are rounded half up."""
    type_, mode = g.type(inp), mode.lower()
    if mode not in RESIZES:
        raise Refusal(f"the interpolation mode {mode!r} is not supported", f"use {', '.join(RESIZES)}")
    if type_.dtype == np.uint8 and mode in ("bilinear", "bicubic") and not align_corners:
        result = interpolate(g, cast(g, inp, np.float32), size, scale_factor, mode)
        return cast(g, (Term(g, result) + 0.5).floor().clamp(min=0, max=255).value, np.uint8)
    axes, op = RESIZES[mode]
    is_bytes = type_.dtype == np.uint8 and mode == "nearest"
    if type_.rank != axes + 2 or not (is_bytes or type_.dtype.kind == "f") or not all(type_.shape[2:]):
        raise Refusal(
            f"interpolate with mode={mode!r} expects a float tensor with {axes + 2} axes, got {type_}"
        )
    if align_corners and "linear" not in mode:
        raise Refusal(f"the interpolation mode {mode!r} does not support align_corners")
    sizes = _sizes(g, type_.shape[2:], size, scale_factor)
    inp = cast(g, inp, np.float32) if type_.dtype != np.float64 else inp
    if tuple(sizes) == type_.shape[2:]:
        return cast(g, inp, np.uint8) if is_bytes else inp
    if "linear" not in mode:
        result = _nearest(g, inp, sizes) if mode == "nearest" else g.call(op, inp, sizes)
        return cast(g, result, np.uint8) if is_bytes else result
    if align_corners and 1 in sizes and mode != "trilinear":
        raise Refusal("align_corners requires at least two rows and columns", "use align_corners=False")
    return g.call(op, inp, sizes, align_corners=bool(align_corners))


def _sizes(g: Emitter, spatial: tuple[int, ...], size, scale_factor) -> list[int]:
    """Returns the output extents. A single size is that of the first axis; others are 1, as in MegEngine."""
    if (size is None) == (scale_factor is None):
        raise Refusal("interpolate takes either size or scale_factor")
    if scale_factor is None:
        sizes = [size, *[1] * (len(spatial) - 1)] if isinstance(size, int) else size
        result = static_ints(g, sizes, "the size of an image")
    else:
        scales = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * len(spatial)
        result = []
        if len(scales) == len(spatial):
            result = [_scaled(*pair) for pair in zip(spatial, scales, strict=True)]
    if len(result) != len(spatial) or any(size < 1 for size in result):
        given = f"size {size}" if scale_factor is None else f"scale_factor {scale_factor}"
        raise Refusal(f"{given} is not valid for an image of {list(spatial)}")
    return result


def _nearest(g: Emitter, inp, sizes: list[int]) -> Any:
    """Selects the elements floor(i / (outputs / extent)), with the division in float32.

    14 -> 2 takes the elements 0 and 6, not 7; so does ATen with a scale slightly off.
    """
    spatial = g.type(inp).shape[2:]
    if is_symbolic((spatial, sizes)):
        return g.call("aten::upsample_nearest2d", inp, sizes)
    places = [_places(*pair) for pair in zip(spatial, sizes, strict=True)]
    scales = [_scale(*pair) for pair in zip(spatial, places, strict=True)]
    if None not in scales:
        return g.call("aten::upsample_nearest2d", inp, sizes, scales=scales)
    for axis, sources in enumerate(places, 2):
        inp = g.call("aten::index_select", inp, axis, g.constant(sources))
    return inp


def _places(extent: int, outputs: int) -> np.ndarray:
    factor = np.float32(outputs) / np.float32(extent)
    return np.minimum((np.arange(outputs, dtype=np.float32) / factor).astype(np.int64), extent - 1)


def _scale(extent: int, places: np.ndarray) -> float | None:
    """Returns a scale with which ATen selects the same elements of ``extent``; None if there is none."""
    outputs = len(places)
    ratio = np.float32(extent) / np.float32(outputs)
    for ulps in sorted(range(-MAX_STEPS, MAX_STEPS + 1), key=abs):
        near = 1 / float(ratio + np.float32(ulps) * np.spacing(ratio)) if ulps else outputs / extent
        if np.array_equal(nearest_places(extent, outputs, near), places):
            return near
    return None


def _scaled(extent: int, scale) -> int:
    """Returns floor(extent * scale), with the product rounded to float32."""
    if not isinstance(scale, (int, float)) or not abs(scale) <= MAX_SCALE:
        raise Refusal(f"a scale_factor must be a number of at most {MAX_SCALE}")
    exact = Fraction(scale)
    if isinstance(extent, Dim) and exact.denominator <= MAX_DENOMINATOR:  # no rounding at sizes of images
        return extent * exact.numerator // exact.denominator
    return math.floor(np.float32(extent * float(scale)))
