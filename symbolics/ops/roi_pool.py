"""torchvision::roi_pool, the largest element in each part of a box, without the indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import TensorType
from ..op import FLOATS, Op, Tensor, integers, number

Array = np.ndarray


def _result(x: TensorType, boxes: TensorType, output_size: list[int], spatial_scale: float) -> TensorType:
    if boxes.shape[1] != 5 or boxes.dtype != x.dtype or min(output_size) < 1:
        raise ValueError(f"boxes {boxes} in {x}, pooled to {output_size}")
    return TensorType(x.dtype, (boxes.shape[0], x.shape[1], *output_size))


roi_pool = Op(
    "torchvision::roi_pool",
    args=[
        Tensor("x", FLOATS, ranks=(4,)),
        Tensor("boxes", FLOATS, ranks=(2,)),
        integers("output_size", length=2),
        number("spatial_scale", 1.0),
    ],
    result=_result,
)


def _bounds(start: int, extent: int, parts: int, limit: int) -> list[tuple[int, int]]:
    """The pixels of each part of a box of ``extent`` pixels, within the image."""
    edges = [
        (start + int(np.floor(i * extent / parts)), start + int(np.ceil((i + 1) * extent / parts)))
        for i in range(parts)
    ]
    return [(min(max(low, 0), limit), min(max(high, 0), limit)) for low, high in edges]


@roi_pool.reference
def roi_pool_ref(x: Array, boxes: Array, output_size: list[int], spatial_scale: float) -> Array:
    """Zero for an empty part.

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


@roi_pool.onnx(since=22)  # of which ONNX Runtime has no kernel: the largest along each axis, in masks
def roi_pool_onnx22(g, x, boxes, output_size, spatial_scale):
    count, channels, (height, width) = boxes.shape[0], x.shape[1], x.shape[2:]
    number_ = g.op("Gather", boxes, g.ints(0), axis=1, shape=(count,))
    images = g.op(
        "Gather", x, g.op("Cast", number_, to=7, dtype="int64"), axis=0, shape=(count, *x.shape[1:])
    )
    scaled = g.op("Mul", boxes, g.const(spatial_scale))
    corners = g.op("Mul", g.op("Sign", scaled), g.op("Floor", g.op("Add", g.op("Abs", scaled), g.const(0.5))))
    lowest = g.const(np.finfo(x.dtype).min)
    rows = g.op("Unsqueeze", images, g.ints([3]), shape=(count, channels, height, 1, width))
    inside = _parts_onnx(g, corners, (1, 3), output_size[1], width, (count, 1, 1, output_size[1], width))
    rows = _largest_onnx(g, rows, inside, lowest, 4)
    columns = g.op("Unsqueeze", rows, g.ints([2]), shape=(count, channels, 1, height, output_size[1]))
    inside = _parts_onnx(g, corners, (2, 4), output_size[0], height, (count, 1, output_size[0], height, 1))
    result = _largest_onnx(g, columns, inside, lowest, 3)
    is_empty = g.op("Equal", result, lowest, dtype="bool")
    return g.op("Where", is_empty, g.const(0), result, shape=result.shape, dtype=x.dtype)


def _parts_onnx(
    g: Any, corners: Any, ends: tuple[int, int], parts: int, extent: int, shape: tuple[int, ...]
) -> Any:
    """Which pixels of an axis of ``extent`` belong to which part of each box: bools of ``shape``."""
    count, dtype = corners.shape[0], corners.dtype
    low, high = (g.op("Gather", corners, g.ints([end]), axis=1, shape=(count, 1)) for end in ends)
    one = g.const(np.array(1, dtype))
    size = g.op("Max", g.op("Add", g.op("Sub", high, low), one), one, shape=(count, 1))
    edges = []
    for operator, first in (("Floor", 0), ("Ceil", 1)):
        steps = g.const(np.arange(first, parts + first, dtype=dtype))
        share = g.op("Div", g.op("Mul", size, steps), g.const(np.array(parts, dtype)))
        edge = g.op("Add", g.op(operator, share), low)
        edges.append(g.op("Unsqueeze", edge, g.ints([2]), shape=(count, parts, 1)))
    pixels = g.const(np.arange(extent, dtype=dtype))
    is_behind = g.op("GreaterOrEqual", pixels, edges[0], dtype="bool")
    inside = g.op("And", is_behind, g.op("Less", pixels, edges[1], dtype="bool"))
    return g.op("Reshape", inside, g.ints(shape), shape=shape)


def _largest_onnx(g: Any, x: Any, inside: Any, lowest: Any, axis: int) -> Any:
    chosen = g.op("Where", inside, x, lowest, dtype=x.dtype)
    shape = [extent for i, extent in enumerate(chosen.shape) if i != axis]
    return g.op("ReduceMax", chosen, g.ints([axis]), keepdims=0, shape=shape)


roi_pool.unsupported("tflite", "TFLite has no operator that pools in boxes")
roi_pool.unsupported("caffe", "not written yet for Caffe")
