"""Mask R-CNN and Keypoint R-CNN: pastes masks and heatmaps into boxes of different sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.symbolic.dims import Size
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.resizing import CUBIC

FUNCTIONS = Table("torchvision.models.detection.roi_heads.")
REACH = 2  # the taps on each side that a bicubic interpolation looks at


def _sides(g: Emitter, boxes) -> list[Term]:
    return [Term(g, g.call("aten::select", boxes, 1, side)) for side in range(4)]


def _row(x: Term, axis: int = 1) -> Term:
    return Term(x.g, views.unsqueeze(x.g, x.value, axis))


def _count(g: Emitter, size: Size, dtype) -> Term:
    """Returns 0, 1, ..., ``size`` - 1."""
    return Term(g, g.call("aten::arange", 0, size)).to(dtype)


@FUNCTIONS.add("paste_masks_in_image")
def paste_masks_in_image(g, masks, boxes, img_shape, padding=1):
    """Pastes masks [N, 1, M, M], resized to boxes [N, 4], into an image: [N, 1, height, width].

    A mask gets ``padding`` zeros all around, and its box grows like the mask's width; corners are cut to
    whole pixels. What lies within is interpolated (bilinear), a product of matrices along each axis.
    """
    count, _, *extents = g.type(masks).shape
    padded = g.call("aten::pad", masks, [0] * 4 + [padding] * 4, "constant", 0.0)
    inner = Term(g, views.view(g, padded, [count, *(extent + 2 * padding for extent in extents)]))
    sides = _sides(g, boxes)
    x, y = (
        _shares(low, high, size, extent + 2 * padding, 1 + 2 * padding / extents[1])
        for low, high, size, extent in zip(sides[:2], sides[2:], img_shape[::-1], extents[::-1], strict=True)
    )
    return _row(y.matmul(inner).matmul(x.permute(dims=[0, 2, 1]))).value


def _shares(low: Term, high: Term, size: Size, taps: int, growth: float) -> Term:
    """Interpolation weight of each mask element for each pixel along an axis: [N, size, taps]."""
    middle, half = (high + low) * 0.5, (high - low) * 0.5 * growth
    first, last = (_row(corner.to("int64").to(low.dtype)) for corner in (middle - half, middle + half))
    pixels = _count(low.g, size, low.dtype)
    is_within = ((pixels >= first) & (pixels <= last)).to(low.dtype)
    ratio = low.like(taps) / (last - first + 1).clamp(min=1)
    source = ((pixels - first + 0.5) * ratio - 0.5).clamp(min=0, max=taps - 1)
    return (1 - (_row(source, 2) - low.like(np.arange(taps))).abs()).relu() * _row(is_within, 2)


@FUNCTIONS.add("heatmaps_to_keypoints")
def heatmaps_to_keypoints(g, maps, rois):
    """Returns coordinates [N, K, 3] and values [N, K] of the maxima of heatmaps [N, K, H, W] in boxes [N, 4].

    Each map is enlarged (bicubic) to the whole pixels of its box. Boxes are processed one at a time, since
    all at once would need N K images; each is computed in the size of the largest box, and positions outside
    of it are masked.
    """
    count = g.type(maps).shape[0]
    # a box more, since ONNX Runtime 1.31 fails at a Scan of none
    maps, rois = (g.call("aten::pad", x, [0, 1] + [0] * 2 * (g.type(x).rank - 1)) for x in (maps, rois))
    sides, extents = _sides(g, rois), g.type(maps).shape[2:]
    lengths = [(high - low).clamp(min=1) for low, high in zip(sides[:2], sides[2:], strict=True)]
    frame = [_places_of_longest(length.ceil()).value for length in lengths]
    widened = g.call("aten::pad", maps, [0] * 4 + [REACH] * 4, "replicate")
    given = [widened, *(term.value for term in (*sides[:2], *lengths)), *frame]
    types = [g.type(value) for value in given]
    slices = [TensorType(type_.dtype, type_.shape[1:]) for type_ in types[:5]]
    step, inputs = empty_body("box", [*slices, *types[5:]], catalogue())
    step.graph.set_result(_of_one_box(step, inputs, extents))
    results = g.call("tm::scan", given, 0, 5, step.graph)
    places, values = (g.call("aten::slice", x, 0, 0, count) for x in results)
    return views.transpose(g, places, 1, 2), values


def _places_of_longest(lengths: Term) -> Term:
    """Returns 0, 1, ... up to the largest length; a single 0 without lengths."""
    g = lengths.g
    some = g.call("aten::cat", [lengths.to("int64").value, g.constant([1], np.int64)], 0)
    largest = Term(g, g.call("aten::amax", some, [0], True))
    others = Term(g, g.call("tm::repeat_indices", (largest - 1).value))  # zeros
    first = g.constant([0], others.dtype)
    return Term(g, g.call("aten::cat", [first, (others + 1).cumsum(dim=0).value], 0)).to(lengths.dtype)


def _of_one_box(g: Emitter, inputs: list[Any], extents: Any) -> tuple[Any, ...]:
    """Returns the coordinates, as [x, y, 1], and the value of the maximum, for each heatmap of a box."""
    maps, left, top, width, height, columns, rows = (Term(g, value) for value in inputs)
    x, y = (
        _cubic(places, length.ceil(), extent)
        for places, length, extent in ((columns, width, extents[1]), (rows, height, extents[0]))
    )
    is_within = _row(rows < height.ceil()) & (columns < width.ceil())
    inside = is_within.where(y.matmul(maps).matmul(x.permute(dims=[1, 0])), -np.inf)
    line = (
        inside.amax(dim=[2], keepdim=False).argmax(dim=1, keepdim=True).to(maps.dtype)
    )  # the first of equals
    of_line = _row(line.eq(rows), 2).where(inside, -np.inf).amax(dim=[1], keepdim=False)
    column = of_line.argmax(dim=1, keepdim=True).to(maps.dtype)
    found = [
        (place + 0.5) * (length / length.ceil()) + start
        for place, length, start in ((column, width, left), (line, height, top))
    ]
    parts = [each.permute(dims=[1, 0]).value for each in (*found, found[0] * 0 + 1)]
    return g.call("aten::cat", parts, 0), of_line.amax(dim=[1], keepdim=False).value


def _cubic(places: Term, length: Term, extent: int) -> Term:
    """Bicubic interpolation weights [indices, taps] from ``extent`` to ``length`` elements along one axis."""
    source = (places + 0.5) * (length.like(extent) / length) - 0.5
    gap = (_row(source) - source.like(np.arange(-REACH, extent + REACH))).abs()
    near = ((CUBIC + 2) * gap - (CUBIC + 3)) * gap * gap + 1
    far = (((gap - 5) * gap + 8) * gap - 4) * CUBIC
    return (gap <= 1).where(near, (gap < 2).where(far, 0))
