"""torchvision::roi_align and ps_roi_align: means of bilinear samples in bins of boxes.

The samples of a part form a grid, and bilinear weights are products: a part is R x C, with a row R of weights
over the image's rows and a column C over its columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import FLOATS, Argument, Op, Tensor, boolean, integer, integers, number

Array = np.ndarray


def _checked(x: TensorType, boxes: TensorType, output_size: list[int]) -> None:
    if boxes.shape[1] != 5 or boxes.dtype != x.dtype or min(output_size) < 1 or not all(x.shape[2:]):
        raise ValueError(f"boxes {boxes} and output_size {output_size} do not fit {x}")


def _result(x: TensorType, boxes: TensorType, output_size: list[int], **options: Any) -> TensorType:
    _checked(x, boxes, output_size)
    return TensorType(x.dtype, (boxes.shape[0], x.shape[1], *output_size))


def _ps_result(x: TensorType, boxes: TensorType, output_size: list[int], **options: Any) -> TensorType:
    _checked(x, boxes, output_size)
    parts = output_size[0] * output_size[1]
    if x.shape[1] % parts:
        raise ValueError(f"{x} does not have a channel per bin of {parts} bins")
    return TensorType(x.dtype, (boxes.shape[0], x.shape[1] // parts, *output_size))


BOXES: list[Argument] = [
    Tensor("x", FLOATS, ranks=(4,)),
    Tensor("boxes", FLOATS, ranks=(2,)),
    integers("output_size", length=2),
    number("spatial_scale", 1.0),
    integer("sampling_ratio", -1),
]
roi_align = Op("torchvision::roi_align", args=[*BOXES, boolean("aligned", False)], result=_result)
ps_roi_align = Op("torchvision::ps_roi_align", args=BOXES, result=_ps_result)
OPS = [roi_align, ps_roi_align]


def _weights(ends: Array, parts: int, extent: int, scale: float, ratio: int, aligned: bool) -> Array:
    """[K, parts, extent]: the weight of each row for each bin of a box, ``ends`` [K, 2] of boxes."""
    dtype = ends.dtype.type
    low, high = (ends * dtype(scale) - dtype(0.5 if aligned else 0)).T
    size = high - low if aligned else np.maximum(high - low, 1)
    count = np.full_like(size, ratio) if ratio > 0 else np.ceil(size / parts)
    result = np.zeros((len(ends), parts, extent), ends.dtype)
    for box, samples in enumerate(count.astype(int)):
        steps = np.arange(parts)[:, None] + (np.arange(samples) + dtype(0.5)) / max(samples, 1)
        places = low[box] + steps.astype(ends.dtype) * (size[box] / parts)
        inside = (places >= -1) & (places <= extent)
        distance = places.clip(0, extent - 1)[..., None] - np.arange(extent, dtype=ends.dtype)
        shares = np.maximum(1 - abs(distance), 0) * inside[..., None]
        result[box] = shares.sum(1) / max(samples, 1)
    return result


@roi_align.reference
def roi_align_ref(
    x: Array, boxes: Array, output_size: list[int], spatial_scale: float, sampling_ratio: int, aligned: bool
) -> Array:
    """Samples more than one pixel outside count as zeros, nearer ones as the edge.

    Shapes: x [N, C, H, W], boxes [K, 5] of an image's number, x1, y1, x2, y2 -> [K, C, *output_size].
    Units: box corners times ``spatial_scale`` are pixels; their centres are at +0.5 if ``aligned``, and else
    a box has at least one pixel. ``sampling_ratio`` samples in each part along each axis; if it is not
    positive, as many as a part has pixels. Source: torchvision.ops.roi_align.
    """
    wide = np.promote_types(x.dtype, np.float32)
    options = (spatial_scale, sampling_ratio, aligned)
    ends = boxes[:, 1:].astype(wide)
    rows = _weights(ends[:, [1, 3]], output_size[0], x.shape[2], *options)
    columns = _weights(ends[:, [0, 2]], output_size[1], x.shape[3], *options)
    images = x.astype(wide)[boxes[:, 0].astype(int)]
    return (rows[:, None] @ images @ columns[:, None].swapaxes(2, 3)).astype(x.dtype)


@roi_align.onnx(since=16)
def roi_align_onnx16(g, x, boxes, output_size, spatial_scale, sampling_ratio, aligned):
    count = boxes.shape[0]
    images = g.op("Gather", boxes, g.ints(0), axis=1, shape=(count,))
    return g.op(
        "RoiAlign",
        x,
        g.op("Slice", boxes, g.ints([1]), g.ints([5]), g.ints([1]), shape=(count, 4)),
        g.op("Cast", images, to=7, dtype="int64"),
        output_height=output_size[0],
        output_width=output_size[1],
        spatial_scale=float(spatial_scale),
        sampling_ratio=max(sampling_ratio, 0),
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        shape=g.result_types[0].shape,
    )


roi_align.retire("onnx", 22)  # of which ONNX Runtime has no kernel


@roi_align.decompose
def roi_align_products(g, x, boxes, output_size, spatial_scale, sampling_ratio, aligned):
    type_ = g.type(x)
    options = (spatial_scale, sampling_ratio, aligned)
    rows = _weights_by_ops(g, boxes, (2, 4), output_size[0], type_.shape[2], *options)
    columns = _weights_by_ops(g, boxes, (1, 3), output_size[1], type_.shape[3], *options)
    if type_.shape[0] != 1:
        numbers = g.call("aten::to", g.call("aten::select", boxes, 1, 0), dtype="int64")
        x = g.call("aten::index_select", x, 0, numbers)
    columns = g.call("aten::permute", columns, [0, 1, 3, 2])
    return g.call("aten::matmul", g.call("aten::matmul", rows, x), columns)


def _weights_by_ops(
    g: Any, boxes: Any, ends: tuple[int, int], parts: int, extent: Any, scale: float, ratio: int,
    aligned: bool,
) -> Any:  # fmt: skip
    """Like ``_weights``, [K, 1, parts, extent] of open sizes; adaptive sample counts are at most the rows."""
    count, dtype = g.type(boxes).shape[0], g.type(boxes).dtype
    low, high = (Term(g, g.call("aten::select", boxes, 1, end)) * scale for end in ends)
    column = [count, 1, 1, 1]
    low, high = (Term(g, g.call("aten::reshape", end.value, column)) for end in (low, high))
    low = low - 0.5 if aligned else low
    size = high - 0.5 - low if aligned else (high - low).clamp(min=1)
    part = Term(g, g.constant(np.arange(parts, dtype=dtype).reshape(-1, 1, 1)))
    step = _counted(g, ratio if ratio > 0 else extent, dtype, [1], 0.5)
    number_ = Term(g, g.constant(ratio, dtype)) if ratio > 0 else (size / parts).ceil().clamp(min=1)
    places = low + (step / number_ + part) * (size / parts)
    end: Any = Term(g, g.constant(extent, np.int64)).to(dtype) if is_symbolic(extent) else extent
    inside = (places >= -1) & (places <= end)
    if ratio <= 0:
        inside = inside & (step < number_) & (size > 0)
    if is_symbolic(extent):
        nearest = places.clamp(min=0).call("minimum", end - 1)
    else:
        nearest = places.clamp(min=0, max=extent - 1)
    weights = (1 - (nearest - _counted(g, extent, dtype, [], 0)).abs()).relu()
    weights = weights * inside.to(dtype) / number_
    total = weights.call("sum", dim=[2], keepdim=False).value
    return g.call("aten::reshape", total, [count, 1, parts, extent])


def _counted(g: Any, count: Any, dtype: np.dtype, rest: list[int], first: float) -> Term:
    """Returns [count, *rest]: ``first``, ``first + 1``, ..."""
    shape = [count, *rest]
    if not is_symbolic(count):
        return Term(g, g.constant(np.arange(count, dtype=dtype).reshape(shape) + dtype.type(first)))
    numbers = Term(g, g.call("aten::arange", 0, count)).to(dtype)
    return Term(g, g.call("aten::reshape", numbers.value, shape)) + first


@ps_roi_align.reference
def ps_roi_align_ref(
    x: Array, boxes: Array, output_size: list[int], spatial_scale: float, sampling_ratio: int
) -> Array:
    """Each bin of a box reads its own channel: [N, C h w, H, W] -> [K, C, h, w].

    Source: torchvision.ops.ps_roi_align, whose boxes are aligned.
    """
    parts = output_size[0] * output_size[1]
    means = roi_align_ref(x, boxes, output_size, spatial_scale, sampling_ratio, True)
    means = means.reshape(len(boxes), -1, parts, parts)
    return np.diagonal(means, axis1=2, axis2=3).reshape(len(boxes), -1, *output_size).copy()


@ps_roi_align.decompose
def ps_roi_align_diagonal(g, x, boxes, output_size, spatial_scale, sampling_ratio):
    parts = output_size[0] * output_size[1]
    means = g.call("torchvision::roi_align", x, boxes, output_size, spatial_scale, sampling_ratio, True)
    count, channels = g.type(means).shape[:2]
    means = g.call("aten::reshape", means, [count, channels // parts, parts, parts])
    means = g.call("aten::diagonal", means, 0, 2, 3)
    return g.call("aten::reshape", means, [count, channels // parts, *output_size])
