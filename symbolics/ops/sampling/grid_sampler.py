"""aten::grid_sampler, images sampled at positions from -1 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integer
from tmconvert.symbolics.ops.sampling.remap import remap_ref, remap_result
from tmconvert.symbolics.traits import Spatial

Array = np.ndarray


def _grid_result(
    x: TensorType, grid: TensorType, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> TensorType:
    if not (0 <= interpolation_mode <= 2 and 0 <= padding_mode <= 2) or x.dtype != grid.dtype:
        raise ValueError(
            f"mode {interpolation_mode}, padding {padding_mode}, {x} and {grid} are not a valid combination"
        )
    return remap_result(x, grid, None)


grid_sampler = Op(
    "aten::grid_sampler",
    args=[
        Tensor("x", FLOATS, ranks=(4,)), Tensor("grid", FLOATS, ranks=(4,)), integer("interpolation_mode"),
        integer("padding_mode"), boolean("align_corners"),
    ],
    result=_grid_result,
    traits=[Spatial()],
)  # fmt: skip

MODES = ("linear", "nearest", "cubic")  # by interpolation_mode


def _border(padding_mode: int, align_corners: bool) -> str:
    return ("constant", "replicate", "reflect_101" if align_corners else "reflect")[padding_mode]


def _pixel(place: Any, extent: int, align_corners: bool) -> Any:
    """Converts positions to pixels: -1 and 1 are the centres of the outermost pixels, or their edges."""
    span = extent - 1 if align_corners else extent
    half = place.like(span) * 0.5 if isinstance(span, Dim) else span / 2
    return (place + 1) * half if align_corners else (place + 1) * half - 0.5


@grid_sampler.reference
def grid_sampler_ref(
    x: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """Samples ``x`` at positions from -1 to 1. Source: torch.nn.functional.grid_sample."""
    places = np.stack([_pixel(grid[..., i], x.shape[3 - i], align_corners) for i in (0, 1)], -1).astype(
        grid.dtype
    )
    border = _border(padding_mode, align_corners)
    return remap_ref(x, places, None, border, 0, MODES[interpolation_mode])


@grid_sampler.onnx(since=20)  # other names of the modes
def grid_sampler_onnx20(g, x, grid, interpolation_mode, padding_mode, align_corners):
    names = ("linear", "nearest", "cubic")
    return _grid_sample(g, x, grid, names[interpolation_mode], padding_mode, align_corners)


@grid_sampler.onnx(since=16)
def grid_sampler_onnx16(g, x, grid, interpolation_mode, padding_mode, align_corners):
    names = ("bilinear", "nearest", "bicubic")
    return _grid_sample(g, x, grid, names[interpolation_mode], padding_mode, align_corners)


def _grid_sample(g: Any, x: Any, grid: Any, mode: str, padding_mode: int, align_corners: bool) -> Any:
    padding = ("zeros", "border", "reflection")[padding_mode]
    return g.op(
        "GridSample",
        x,
        grid,
        mode=mode,
        padding_mode=padding,
        align_corners=int(align_corners),
        shape=g.result_types[0].shape,
    )


@grid_sampler.decompose
def grid_sampler_remap(g, x, grid, interpolation_mode, padding_mode, align_corners):
    shape = g.type(x).shape
    parts = [
        _pixel(Term(g, g.call("aten::slice", grid, 3, i, i + 1)), shape[3 - i], align_corners).value
        for i in (0, 1)
    ]
    border, mode = _border(padding_mode, align_corners), MODES[interpolation_mode]
    return g.call("tm::remap", x, g.call("aten::cat", parts, 3), None, border, 0, mode)
