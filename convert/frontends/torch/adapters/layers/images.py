"""Image functions: interpolate, grid_sample, unfold, fold and pixel shuffle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.layers.dynamic_resizing import has_quotient, resized_dynamically
from tmconvert.frontends.torch.adapters.layers.unbatched import batched, per_axis
from tmconvert.frontends.torch.adapters.shapes.sizes import Quotient, as_quotient
from tmconvert.frontends.torch.adapters.values import cast, rank, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.ir.symbolic.rounded import Steps, rounded
from tmconvert.symbolics.idioms.dynamic_resizing import averaged

ATEN, FUNCTIONS = Table(), Table("torch.nn.functional.")

# ATen's op for (mode, axes); and whether it mixes neighbours, so that align_corners matters
MIXING = {
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
    ("bilinear-aa", 2): "_upsample_bilinear2d_aa",
    ("bicubic-aa", 2): "_upsample_bicubic2d_aa",
}
COPYING = {
    **{("nearest", axes): f"upsample_nearest{axes}d" for axes in (1, 2, 3)},
    **{("nearest-exact", axes): f"_upsample_nearest_exact{axes}d" for axes in (1, 2, 3)},
}
MODES = {**MIXING, **COPYING}


@FUNCTIONS.add("interpolate", "upsample")
def interpolate(
    g, input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):  # fmt: skip
    axes = rank(g, input) - 2
    scales = None
    if size is not None:
        sizes = per_axis(g, size, axes)
    else:
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * axes
        extents = g.type(input).shape[2:]
        sizes = [scaled(extent, factor) for extent, factor in zip(extents, factors, strict=True)]
        scales = None if recompute_scale_factor else list(map(_as_factor, factors))
    if mode == "area" and is_symbolic((g.type(input).shape[2:], list(sizes))):
        return averaged(g, input, sizes)
    if mode == "area":
        return g.call(f"aten::adaptive_avg_pool{axes}d", input, sizes)
    name = MODES.get((f"{mode}-aa" if antialias else mode, axes))
    if name is None:
        raise Refusal(f"interpolate with mode={mode!r} of {g.type(input)} is not supported")
    return _resized(g, name, input, sizes, bool(align_corners), scales)


def _as_factor(factor: Any) -> Any:
    """Returns a factor as a float, or as a Quotient of sizes."""
    return as_quotient(factor) if isinstance(factor, (Dim, Quotient)) else float(factor)


def scaled(extent: Any, factor: Any) -> Any:
    """Returns floor(extent * factor)."""
    if not isinstance(extent, Dim) and not isinstance(factor, (Dim, Quotient)):
        return math.floor(float(extent) * factor)
    return rounded("floor", Steps("mul", extent, as_quotient(factor).steps))


def _resized(
    g: Emitter, name: str, x, sizes: Sequence[Any], align_corners: bool, scales: list[Any] | None
) -> Any:
    corners = [align_corners] if name in MIXING.values() else []
    if align_corners:
        scales = None
    dtype = g.type(x).dtype
    made = None if align_corners else resized_dynamically(g, name, x, sizes, scales)
    if made is not None:
        return made
    if has_quotient(scales):  # which is that of the sizes
        scales = None
    if dtype.kind == "f":
        return g.call(f"aten::{name}", x, list(sizes), *corners, scales=scales)
    if corners:
        raise Refusal(f"{name} of {dtype} images is not supported", "convert them to float32")
    wide = cast(g, x, np.float64 if dtype.itemsize > 2 else np.float32)
    return cast(g, g.call(f"aten::{name}", wide, list(sizes), scales=scales), dtype)


def _upsample(name: str, axes: int) -> None:
    is_mixing = name in MIXING.values()

    def adapter(g: Emitter, input: Any, output_size: Any, *others: Any, **named: Any) -> Any:
        """Adapter of resizing; the output size or the factor of each axis is passed, the other is None."""
        others = (*others, *named.values())
        corners, factors = (bool(others[0]), others[1:]) if is_mixing else (False, others)
        if factors and isinstance(factors[0], (list, tuple)):
            factors = tuple(factors[0])
        extents, scales = g.type(input).shape[2:], None
        if output_size is None:
            output_size = [scaled(extent, factor) for extent, factor in zip(extents, factors, strict=True)]
        sizes = per_axis(g, output_size, axes)
        if any(factors):  # an axis without one is resized by the ratio of its sizes
            rows = zip(factors, sizes, extents, strict=True)
            scales = [float(factor or size / extent) for factor, size, extent in rows]
        return _resized(g, name, input, sizes, corners, scales)

    ATEN.add(name)(adapter)


for (_, _axes), _name in MODES.items():
    _upsample(_name, _axes)


# ---- places


INTERPOLATIONS, BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


@FUNCTIONS.add("grid_sample")
def grid_sample(g, input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    numbers = INTERPOLATIONS.index(mode), BORDERS.index(padding_mode)
    return grid_sampler(g, input, grid, *numbers, bool(align_corners))


@ATEN.add("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(g, input, grid, interpolation_mode, padding_mode, align_corners):
    op = "aten::grid_sampler" if rank(g, input) == 4 else "aten::grid_sampler_3d"
    return g.call(op, input, grid, interpolation_mode, padding_mode, align_corners)


@FUNCTIONS.add("affine_grid")
def affine_grid(g, theta, size, align_corners=None):
    return g.call("aten::affine_grid_generator", theta, static_ints(g, size), bool(align_corners))


# ---- windows and pixels


@FUNCTIONS.add("unfold")
def unfold(g, input, kernel_size, dilation=1, padding=0, stride=1):
    windows = [per_axis(g, each, 2) for each in (kernel_size, dilation, padding, stride)]
    return batched(g, input, 2, lambda x: g.call("aten::im2col", x, *windows))


ATEN.add("im2col")(unfold)


@FUNCTIONS.add("fold")
def fold(g, input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    windows = [per_axis(g, each, 2) for each in (output_size, kernel_size, dilation, padding, stride)]
    return batched(g, input, 1, lambda x: g.call("aten::col2im", x, *windows))


ATEN.add("col2im")(fold)


ATEN.add("native_channel_shuffle")(lambda g, input, groups: g.call("aten::channel_shuffle", input, groups))
