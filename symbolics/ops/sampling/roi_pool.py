"""torchvision::roi_pool: maxima of bins of boxes, without indices."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integers, number

Array = np.ndarray


def _result(x: TensorType, boxes: TensorType, output_size: list[int], spatial_scale: float) -> TensorType:
    if boxes.shape[1] != 5 or boxes.dtype != x.dtype or min(output_size) < 1:
        raise ValueError(f"boxes {boxes} and output_size {output_size} do not fit {x}")
    return TensorType(x.dtype, (boxes.shape[0], x.shape[1], *output_size))


roi_pool = Op(
    "torchvision::roi_pool",
    args=[
        Tensor("x", FLOATS, ranks=(4,)), Tensor("boxes", FLOATS, ranks=(2,)),
        integers("output_size", length=2), number("spatial_scale", 1.0),
    ],
    result=_result,
)  # fmt: skip


def _bounds(start: int, extent: int, parts: int, limit: int) -> list[tuple[int, int]]:
    """Returns the pixels of each bin of a box of ``extent`` pixels, within the image."""
    edges = [
        (start + int(np.floor(i * extent / parts)), start + int(np.ceil((i + 1) * extent / parts)))
        for i in range(parts)
    ]
    return [(min(max(low, 0), limit), min(max(high, 0), limit)) for low, high in edges]


@roi_pool.reference
def roi_pool_ref(x: Array, boxes: Array, output_size: list[int], spatial_scale: float) -> Array:
    """Maxima of bins; zero for an empty bin.

    Shapes: x [N, C, H, W], boxes [K, 5] of an image's number, x1, y1, x2, y2 -> [K, C, *output_size].
    Units: box corners times ``spatial_scale`` are rounded to pixels, halves away from zero; both are inside.
    Source: Fast R-CNN; ONNX MaxRoiPool; megengine.functional.vision.roi_pooling.
    """
    result = np.zeros((len(boxes), x.shape[1], *output_size), x.dtype)
    scaled = boxes[:, 1:] * x.dtype.type(spatial_scale)
    corners = (np.sign(scaled) * np.floor(np.abs(scaled) + x.dtype.type(0.5))).astype(int)
    for box, (left, top, right, bottom) in enumerate(corners):
        image = x[int(boxes[box, 0])]
        rows = _bounds(top, max(bottom - top + 1, 1), output_size[0], x.shape[2])
        columns = _bounds(left, max(right - left + 1, 1), output_size[1], x.shape[3])
        for i, (low, high) in enumerate(rows):
            for j, (first, last) in enumerate(columns):
                if low < high and first < last:
                    result[box, :, i, j] = image[:, low:high, first:last].max((1, 2))
    return result


@roi_pool.onnx(since=1)
def roi_pool_onnx1(g, x, boxes, output_size, spatial_scale):
    return g.op(
        "MaxRoiPool",
        x,
        boxes,
        pooled_shape=list(output_size),
        spatial_scale=float(spatial_scale),
        shape=g.result_types[0].shape,
    )


roi_pool.retire("onnx", 22)  # of which ONNX Runtime has no kernel


@roi_pool.decompose
def roi_pool_masked(g, x, boxes, output_size, spatial_scale):
    """Masked maxima along each axis."""
    (count, _), (_, channels, height, width) = g.type(boxes).shape, g.type(x).shape
    number_ = g.call("aten::to", g.call("aten::select", boxes, 1, 0), dtype="int64")
    images = g.call("aten::index_select", x, 0, number_)
    corners = (Term(g, boxes) * spatial_scale).call("tm::round_half_away")
    lowest = float(np.finfo(g.type(x).dtype).min)
    rows = Term(g, g.call("aten::reshape", images, [count, channels, height, 1, width]))
    inside = _parts(corners, (1, 3), output_size[1], width)
    inside = inside.reshape(shape=[count, 1, 1, output_size[1], width])
    rows = inside.where(rows, lowest).amax(dim=[4], keepdim=False)
    columns = rows.reshape(shape=[count, channels, 1, height, output_size[1]])
    inside = _parts(corners, (2, 4), output_size[0], height)
    inside = inside.reshape(shape=[count, 1, output_size[0], height, 1])
    result = inside.where(columns, lowest).amax(dim=[3], keepdim=False)
    return result.eq(lowest).where(0, result).value


def _parts(corners: Term, ends: tuple[int, int], parts: int, extent: int) -> Term:
    """Returns which pixels of an axis belong to which bin of each box: bools [K, parts, extent]."""
    g, count = corners.g, corners.type.shape[0]
    low, high = (corners.slice(dim=1, start=end, end=end + 1) for end in ends)
    size = (high - low + 1).maximum(low.like(1))
    pixels = Term(g, g.constant(np.arange(extent), corners.dtype))
    first, last = (
        (size * Term(g, g.constant(np.arange(start, parts + start), corners.dtype)) / parts)
        for start in (0, 1)
    )
    first, last = ((edge + low).reshape(shape=[count, parts, 1]) for edge in (first.floor(), last.ceil()))
    return (pixels >= first) & (pixels < last)
