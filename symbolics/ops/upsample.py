"""aten::upsample_nearest2d and aten::upsample_bilinear2d, images resized over H and W.

Where a target has other coordinates or rounds otherwise, elements are taken by index or by matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.dims import is_symbolic
from ...ir.types import TensorType
from ..idioms import caffe
from ..layouts import NHWC
from ..op import FLOATS, Argument, Op, Tensor, boolean, integers

Array = np.ndarray


def _result(x: TensorType, output_size: list[int], align_corners: bool = False) -> TensorType:
    if any(extent < 1 for extent in x.shape[2:]):
        raise ValueError(f"x {x} must have an image in the last two axes")
    if any(size < 1 for size in output_size):
        raise ValueError(f"{output_size} is no size of an image")
    return TensorType(x.dtype, (*x.shape[:2], *output_size))


SIGNATURE: list[Argument] = [Tensor("x", FLOATS, ranks=(4,)), integers("output_size", length=2)]
upsample_nearest2d = Op(
    "aten::upsample_nearest2d",
    args=SIGNATURE,
    result=_result,
    layout=NHWC,
)
upsample_bilinear2d = Op(
    "aten::upsample_bilinear2d",
    args=[*SIGNATURE, boolean("align_corners", False)],
    result=_result,
    layout=NHWC,
)
OPS = [upsample_nearest2d, upsample_bilinear2d]


def nearest_places(extent: int, outputs: int) -> Array:
    """The source of each output along one axis: floor(i / (outputs / extent)), rounded to float32 twice.

    So does MegEngine, and 14 -> 2 takes the elements 0 and 6, where floor(i extent / outputs) is 7.
    """
    ratio = np.float32(outputs) / np.float32(extent)
    return np.minimum((np.arange(outputs, dtype=np.float32) / ratio).astype(np.int64), extent - 1)


def _survives_rounding(extent: int, outputs: int) -> bool:
    """Whether runtimes that multiply by extent / outputs instead find the same sources."""
    ratio = np.float32(extent) / np.float32(outputs)
    places = np.floor(np.arange(outputs, dtype=np.float32) * ratio)
    return np.array_equal(places, nearest_places(extent, outputs))


def _factors(spatial: Any, output_size: list[int]) -> list[int] | None:
    """The integers by which an image grows; None where they are none."""
    if any(size % extent for extent, size in zip(spatial, output_size, strict=True)):
        return None
    return [size // extent for extent, size in zip(spatial, output_size, strict=True)]


def linear_taps(extent: int, outputs: int, align_corners: bool) -> tuple[Array, Array, Array]:
    """(lower, upper, fraction): output i is x[lower] (1 - fraction) + x[upper] fraction."""
    if align_corners:
        position = np.arange(outputs) * ((extent - 1) / max(outputs - 1, 1))
    else:
        position = (np.arange(outputs) + 0.5) * (extent / outputs) - 0.5
    position = position.clip(0, extent - 1)
    lower = position.astype(np.int64)
    return lower, np.minimum(lower + 1, extent - 1), position - lower


def _matrix(extent: int, outputs: int, align_corners: bool, dtype: Any) -> Array:
    """[outputs, extent]: what bilinear resizing does along one axis."""
    lower, upper, fraction = linear_taps(extent, outputs, align_corners)
    matrix, rows = np.zeros((outputs, extent)), np.arange(outputs)
    matrix[rows, upper] = fraction
    matrix[rows, lower] += 1 - fraction
    return matrix.astype(dtype)


@upsample_nearest2d.reference
def upsample_nearest2d_ref(x: Array, output_size: list[int]) -> Array:
    """Copies of the element whose square each output's corner lies in.

    Shapes: x [N, C, H, W] -> [N, C, output_size[0], output_size[1]].
    Source: megengine.functional.vision.interpolate; torch rounds floor(i H / H') otherwise.
    """
    for axis, outputs in enumerate(output_size, 2):
        x = x.take(nearest_places(x.shape[axis], outputs), axis)
    return x


@upsample_bilinear2d.reference
def upsample_bilinear2d_ref(x: Array, output_size: list[int], align_corners: bool) -> Array:
    """Weighted means of neighbours, along H and then along W.

    Shapes: x [N, C, H, W] -> [N, C, output_size[0], output_size[1]].
    Units: pixels with centres at +0.5, a ratio of H / H', what lies outside is the edge's;
    with align_corners the centres of the corners coincide, a ratio of (H - 1) / (H' - 1).
    Source: torch.nn.functional.interpolate, megengine.functional.vision.interpolate.
    """
    for axis, outputs in enumerate(output_size, 2):
        lower, upper, fraction = linear_taps(x.shape[axis], outputs, align_corners)
        weight = fraction.astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1 - axis))
        x = x.take(lower, axis) * (1 - weight) + x.take(upper, axis) * weight
    return x


@upsample_nearest2d.onnx(since=11)  # takes sizes, and says what it rounds
def upsample_nearest2d_onnx11(g, x, output_size):
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if is_symbolic((x.shape[2:], output_size)):
        return _upsampled_onnx(g, "Resize", x, output_size, **attributes)
    if not all(map(_survives_rounding, x.shape[2:], output_size)):
        return _gathered(g, "Gather", x, 2, output_size)
    return _resized_onnx(g, x, output_size, mode="nearest", **attributes)


# Resize replaces Upsample, whose scales are an input from opset 9 on
upsample_nearest2d.onnx(10)(lambda g, x, output_size: _upsampled_onnx(g, "Resize", x, output_size))
upsample_nearest2d.onnx(9)(lambda g, x, output_size: _upsampled_onnx(g, "Upsample", x, output_size))


def _upsampled_onnx(g: Any, operator: str, x: Any, output_size: list[int], **attributes: str) -> Any:
    """By scales, of which only integers are sure to give the wanted sizes."""
    if (factors := _factors(x.shape[2:], output_size)) is None:
        return _gathered(g, "Gather", x, 2, output_size)
    scales = g.const(np.array([1, 1, *factors], np.float32))
    region = [g.const(np.zeros(0, np.float32))] if attributes else []  # from opset 11 on
    return g.op(operator, x, *region, scales, mode="nearest", shape=g.result_types[0].shape, **attributes)


@upsample_nearest2d.onnx(since=7)
def upsample_nearest2d_onnx7(g, x, output_size):
    if (factors := _factors(x.shape[2:], output_size)) is None:
        return _gathered(g, "Gather", x, 2, output_size)
    return g.op("Upsample", x, mode="nearest", scales=[1.0, 1.0, *map(float, factors)])


@upsample_bilinear2d.onnx(since=11)
def upsample_bilinear2d_onnx11(g, x, output_size, align_corners):
    transformation = "align_corners" if align_corners else "half_pixel"
    return _resized_onnx(g, x, output_size, mode="linear", coordinate_transformation_mode=transformation)


@upsample_bilinear2d.onnx(since=7)  # Upsample and Resize-10 know neither of the transformations
def upsample_bilinear2d_onnx7(g, x, output_size, align_corners):
    (height, width), (rows, columns) = x.shape[2:], output_size
    if width != columns:
        matrix = g.const(_matrix(width, columns, align_corners, x.dtype).T)
        x = g.op("MatMul", x, matrix, shape=(*x.shape[:3], columns))
    if height != rows:
        matrix = g.const(_matrix(height, rows, align_corners, x.dtype))
        x = g.op("MatMul", matrix, x, shape=(*x.shape[:2], rows, columns))
    return x


def _resized_onnx(g: Any, x: Any, output_size: list[int], **attributes: str) -> Any:
    # opset 11 wants the second and the third input, if only empty
    nothing = g.const(np.zeros(0, np.float32))
    sizes = g.ints([*x.shape[:2], *output_size])
    return g.op("Resize", x, nothing, nothing, sizes, shape=g.result_types[0].shape, **attributes)


def _gathered(g: Any, operator: str, x: Any, height_axis: int, output_size: list[int]) -> Any:
    """Elements by their index, along one axis after the other."""
    if is_symbolic((x.shape[height_axis : height_axis + 2], output_size)):
        g.refuse("which elements it copies depends on the size, unless it grows by whole numbers")
    for axis, outputs in enumerate(output_size, height_axis):
        if outputs != x.shape[axis]:
            indices = g.ints(nearest_places(x.shape[axis], outputs))
            shape = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
            x = g.op(operator, x, indices, axis=axis, shape=shape)
    return x


@upsample_nearest2d.tflite()
def upsample_nearest2d_tflite(g, x, output_size):
    if not all(map(_survives_rounding, x.shape[1:3], output_size)):
        return _gathered(g, "GATHER", x, 1, output_size)
    return g.op("RESIZE_NEAREST_NEIGHBOR", x, g.ints(output_size), shape=g.result_types[0].shape)


@upsample_bilinear2d.tflite()
def upsample_bilinear2d_tflite(g, x, output_size, align_corners):
    return g.op(
        "RESIZE_BILINEAR",
        x,
        g.ints(output_size),
        align_corners=align_corners,
        half_pixel_centers=not align_corners,
        shape=g.result_types[0].shape,
    )


@upsample_nearest2d.caffe()
def upsample_nearest2d_caffe(g, x, output_size):
    factors = _factors(x.shape[2:], output_size)
    if factors is not None:
        return caffe.deconvolved(g, x, np.ones(factors, x.dtype), factors, [0, 0])
    sources = [nearest_places(extent, size) for extent, size in zip(x.shape[2:], output_size, strict=True)]
    matrices = [
        np.eye(extent, dtype=x.dtype)[source] for extent, source in zip(x.shape[2:], sources, strict=True)
    ]
    return caffe.mapped(g, x, *matrices)


@upsample_bilinear2d.caffe()
def upsample_bilinear2d_caffe(g, x, output_size, align_corners):
    factors = _factors(x.shape[2:], output_size)
    if factors is None or align_corners:
        spatial = x.shape[2:]
        matrices = [_matrix(spatial[i], output_size[i], align_corners, x.dtype) for i in (0, 1)]
        return caffe.mapped(g, x, *matrices)
    for axis, factor in enumerate(factors, 2):
        if factor > 1:  # what lies outside is the edge's
            x = _with_edges_caffe(g, x, axis)
    # of the result, the parts that come of the edges are cut off like padding
    padding = [factor // 2 + (factor if factor > 1 else 0) for factor in factors]
    kernel = np.outer(*map(_triangle, factors)).astype(x.dtype)
    return caffe.deconvolved(g, x, kernel, factors, padding)


def _triangle(factor: int) -> Array:
    """The kernel of linear interpolation, of 2 factor - factor % 2 elements."""
    centre = (2 * factor - factor % 2 - 1) / 2
    return 1 - abs(np.arange(2 * factor - factor % 2) - centre) / factor


def _with_edges_caffe(g: Any, x: Any, axis: int) -> Any:
    extent = x.shape[axis]
    first = caffe.sliced(g, x, axis, 0, 1)
    last = caffe.sliced(g, x, axis, extent - 1, extent)
    return g.op(
        "Concat", first, x, last, axis=axis, shape=(*x.shape[:axis], extent + 2, *x.shape[axis + 1 :])
    )
