"""aten::grid_sampler_3d, volumes sampled at positions from -1 to 1.

A position between elements is interpolated linearly along each axis, from eight neighbours.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integer

Array = np.ndarray
LINEAR, NEAREST = 0, 1
ZEROS, REFLECTION = 0, 2  # 1 is the border


def _result(
    x: TensorType, grid: TensorType, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> TensorType:
    if interpolation_mode not in (LINEAR, NEAREST) or not 0 <= padding_mode <= REFLECTION:
        raise ValueError(
            f"grid_sample of volumes does not support mode {interpolation_mode} with padding {padding_mode}"
        )
    if grid.shape[4] != 3 or grid.shape[0] != x.shape[0] or x.dtype != grid.dtype or not all(x.shape[2:]):
        raise ValueError(f"the positions {grid} must be (x, y, z) for {x}")
    return TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:4]))


grid_sampler_3d = Op(
    "aten::grid_sampler_3d",
    args=[
        Tensor("x", FLOATS, ranks=(5,)), Tensor("grid", FLOATS, ranks=(5,)), integer("interpolation_mode"),
        integer("padding_mode"), boolean("align_corners"),
    ],
    result=_result,
)  # fmt: skip


def _place(at: Any, extent: int, padding_mode: int, align_corners: bool, ops: Any) -> Any:
    """Converts positions to elements; ``ops`` has floor, minimum and clip for ``at``."""
    at = (at + 1) * ((extent - 1) / 2) if align_corners else (at + 1) * (extent / 2) - 0.5
    if padding_mode == REFLECTION:
        # within [first, first + span], and back from its ends
        first, span = (0.0, extent - 1) if align_corners else (-0.5, extent)
        if span == 0:
            return at * 0
        at = at - first
        at = at - ops.floor(at / (2 * span)) * (2 * span)
        at = ops.minimum(at, 2 * span - at) + first
    return at if padding_mode == ZEROS else ops.clip(at, 0, extent - 1)


class _Numpy:
    floor, minimum, clip = np.floor, np.minimum, np.clip


class _Terms:
    @staticmethod
    def floor(x: Term) -> Term:
        return x.floor()

    @staticmethod
    def minimum(x: Term, other: Term) -> Term:
        return x.minimum(other)

    @staticmethod
    def clip(x: Term, low: float, high: float) -> Term:
        return x.clamp(min=low, max=high)


@grid_sampler_3d.reference
def grid_sampler_3d_ref(
    x: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """Shapes: x [N, C, D, H, W], grid [N, d, h, w, 3] of (x, y, z) -> [N, C, d, h, w].

    Source: torch.nn.functional.grid_sample.
    """
    wide = np.promote_types(grid.dtype, np.float32)
    extents = x.shape[2:]
    places = [
        _place(grid[..., 2 - i].astype(wide), extent, padding_mode, align_corners, _Numpy)
        for i, extent in enumerate(extents)
    ]
    images = np.arange(len(x)).reshape(-1, 1, 1, 1)
    last, total = np.moveaxis(x, 1, -1), np.zeros((), wide)
    for taps in product((0, 1), repeat=3) if interpolation_mode == LINEAR else [(0, 0, 0)]:
        index, weight = [], np.ones_like(places[0])
        for at, tap, extent in zip(places, taps, extents, strict=True):
            low = np.floor(at) if interpolation_mode == LINEAR else np.rint(at)
            element = low + tap
            if interpolation_mode == LINEAR:
                weight = weight * (at - low if tap else low + 1 - at)
            weight = weight * ((element >= 0) & (element < extent))
            index.append(np.nan_to_num(element).clip(0, extent - 1).astype(int))
        total = total + last[images, index[0], index[1], index[2]] * weight[..., None]
    return np.ascontiguousarray(np.moveaxis(total, -1, 1)).astype(x.dtype)


@grid_sampler_3d.decompose
def grid_sampler_3d_gathered(g, x, grid, interpolation_mode, padding_mode, align_corners):
    (batch, channels, *extents), (_, *outputs, _) = g.type(x).shape, g.type(grid).shape
    depth, height, width = extents
    rows = g.call("aten::permute", x, [0, 2, 3, 4, 1])
    rows = g.call("aten::reshape", rows, [batch * depth * height * width, channels])
    images = Term(g, g.call("aten::reshape", g.call("aten::arange", 0, batch), [batch, 1, 1, 1]))
    images = images.to("int64")
    places = [
        _place(
            Term(g, g.call("aten::select", grid, 4, 2 - i)), extents[i], padding_mode, align_corners, _Terms
        )
        for i in range(3)
    ]
    total = None
    for taps in product((0, 1), repeat=3) if interpolation_mode == LINEAR else [(0, 0, 0)]:
        index, weight = images, None
        for at, tap, extent in zip(places, taps, extents, strict=True):
            low = at.floor() if interpolation_mode == LINEAR else at.round()
            element = low + tap if tap else low
            inner = element.clamp(min=0, max=extent - 1)
            share = inner.eq(element).to(at.dtype)
            if interpolation_mode == LINEAR:
                share = share * (at - low if tap else low + 1 - at)
            weight = share if weight is None else weight * share
            index = index * extent + inner.to("int64")
        assert weight is not None
        number = g.call("aten::reshape", index.value, [index.type.size])
        taken = Term(g, g.call("aten::index_select", rows, 0, number))
        taken = taken * Term(g, g.call("aten::reshape", weight.value, [weight.type.size, 1]))
        total = taken if total is None else total + taken
    assert total is not None
    result = g.call("aten::reshape", total.value, [batch, *outputs, channels])
    return g.call("aten::permute", result, [0, 4, 1, 2, 3])
