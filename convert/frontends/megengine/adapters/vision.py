"""megengine.functional.vision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....errors import Refusal
from ....ir.emitter import Emitter
from .table import Table
from .values import cast, static_ints

FUNCTIONS = Table("megengine.functional.vision.")

MAX_SCALE = 1 << 31


@FUNCTIONS.add("interpolate")
def interpolate(
    g: Emitter,
    inp: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "bilinear",
    align_corners: bool | None = None,
) -> Any:
    """Computed and given back in float32 where the input is float16."""
    type_ = g.type(inp)
    if mode.lower() not in ("nearest", "bilinear"):
        raise Refusal(
            f"the interpolation mode {mode!r} is not supported", "interpolate by 'bilinear' or 'nearest'"
        )
    if type_.rank != 4 or type_.dtype.kind != "f" or not all(type_.shape[2:]):
        raise Refusal(f"interpolate resizes float images [N, C, H, W], not {type_}")
    sizes = _sizes(g, type_.shape[2:], size, scale_factor)
    if type_.dtype == np.float16:
        inp = cast(g, inp, np.float32)
    if tuple(sizes) == type_.shape[2:]:
        return inp
    if mode.lower() == "nearest":
        if align_corners:
            raise Refusal("the interpolation mode 'nearest' has no align_corners")
        return g.call("aten::upsample_nearest2d", inp, sizes)
    if align_corners and min(sizes) == 1:
        raise Refusal("an image of one row or column has no corners to align", "use align_corners=False")
    return g.call("aten::upsample_bilinear2d", inp, sizes, align_corners=bool(align_corners))


def _sizes(g: Emitter, spatial: tuple[int, ...], size: Any, scale_factor: Any) -> list[int]:
    """Height and width of the result. To MegEngine, a single size is that of H, and W becomes 1."""
    if (size is None) == (scale_factor is None):
        raise Refusal("interpolate takes either size or scale_factor")
    if scale_factor is None:
        sizes = [size, 1] if isinstance(size, int) else size
        result = static_ints(g, sizes, "the size of an image")
    else:
        scales = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * 2
        result = [_scaled(*pair) for pair in zip(spatial, scales, strict=False)] if len(scales) == 2 else []
    if len(result) != 2 or min(result) < 1:
        given = f"size {size}" if scale_factor is None else f"scale_factor {scale_factor}"
        raise Refusal(f"{given} makes no image of one of {list(spatial)}")
    return result


def _scaled(extent: int, scale: Any) -> int:
    """floor(extent scale), the product rounded to float32."""
    if not isinstance(scale, (int, float)) or not abs(scale) <= MAX_SCALE:
        raise Refusal(f"a scale_factor must be a number of at most {MAX_SCALE}")
    return math.floor(np.float32(extent * float(scale)))
