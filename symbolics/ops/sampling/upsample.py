"""aten::upsample_nearest2d and aten::upsample_bilinear2d.

Where a target has other coordinates or rounds otherwise, elements are taken by index or by matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import NHWC
from tmconvert.symbolics.op import FLOATS, Argument, Op, Tensor, boolean, integers, numbers
from tmconvert.symbolics.resizing import (
    absent_input,
    linear_matrix,
    linear_taps,
    mixed_tflite,
    multiplied,
    nearest_places,
    resized_onnx,
    survives_rounding,
)
from tmconvert.symbolics.traits import Homogeneous, Interpolates, KeepsQparams, SelectsElements, Spatial

if TYPE_CHECKING:
    from fractions import Fraction

Array = np.ndarray


def resized(x: TensorType, output_size: list[int], scales: list[float] | None = None, **_: Any) -> TensorType:
    if any(extent < 1 for extent in x.shape[2:]):
        raise ValueError(f"expected an image in the last two axes, got x {x}")
    if any(size < 1 for size in output_size):
        raise ValueError(f"the output size {output_size} is not valid")
    if scales is not None and (len(scales) != len(output_size) or min(scales) <= 0):
        raise ValueError(f"the scales {scales} do not fit the output size {output_size}")
    return TensorType(x.dtype, (*x.shape[:2], *output_size))


SIGNATURE: list[Argument] = [Tensor("x", FLOATS, ranks=(4,)), integers("output_size", length=2)]
SCALES = numbers("scales", None)  # the factors that were asked for, where the coordinates are to heed them
upsample_nearest2d = Op(
    "aten::upsample_nearest2d",
    args=[*SIGNATURE, SCALES],
    result=resized,
    layout=NHWC,
    traits=[Spatial(), KeepsQparams(), Homogeneous(), SelectsElements()],
)
upsample_bilinear2d = Op(
    "aten::upsample_bilinear2d",
    args=[*SIGNATURE, boolean("align_corners", False), SCALES],
    result=resized,
    layout=NHWC,
    traits=[Spatial(), KeepsQparams(), Homogeneous(), Interpolates()],
)
OPS = [upsample_nearest2d, upsample_bilinear2d]


def _factors(spatial: Any, output_size: list[int], scales: list[float] | None) -> list[int] | None:
    """Returns the integer factors by which each pixel is repeated; None without such."""
    if any(size % extent for extent, size in zip(spatial, output_size, strict=True)):
        return None
    factors = [size // extent for extent, size in zip(spatial, output_size, strict=True)]
    if is_symbolic((spatial, output_size)):
        return None if scales_matter(spatial, output_size, scales) else factors
    places = map(nearest_places, spatial, output_size, each(scales))
    copies = [np.arange(size) // factor for size, factor in zip(output_size, factors, strict=True)]
    return factors if all(map(np.array_equal, places, copies)) else None


def each(scales: list[float] | None, count: int = 2) -> list[float | None]:
    return [None] * count if scales is None else list(scales)


def _fraction(scale: float) -> Fraction:
    from fractions import Fraction

    return Fraction(scale).limit_denominator(1 << 16)


def scales_matter(spatial: Any, output_size: list[int], scales: list[float] | None) -> bool:
    """Whether ``scales`` imply other coordinates than the sizes."""
    if scales is None:
        return False
    pairs = zip(spatial, output_size, map(_fraction, scales), strict=True)
    return any(size * scale.denominator != extent * scale.numerator for extent, size, scale in pairs)


@upsample_nearest2d.reference
def upsample_nearest2d_ref(x: Array, output_size: list[int], scales: list[float] | None) -> Array:
    """Copies the element that contains each output's corner.

    Shapes: x [N, C, H, W] -> [N, C, *output_size]. Source: torch.nn.functional.interpolate.
    """
    for axis, (outputs, scale) in enumerate(zip(output_size, each(scales, x.ndim - 2), strict=True), 2):
        x = x.take(nearest_places(x.shape[axis], outputs, scale), axis)
    return x


@upsample_bilinear2d.reference
def upsample_bilinear2d_ref(
    x: Array, output_size: list[int], align_corners: bool, scales: list[float] | None
) -> Array:
    """Weighted means of neighbours, along H and then along W.

    Shapes: x [N, C, H, W] -> [N, C, output_size[0], output_size[1]].
    Units: pixels with centres at +0.5, a ratio of H / H', what lies outside is the edge's;
    with align_corners the centres of the corners coincide, a ratio of (H - 1) / (H' - 1).
    Source: torch.nn.functional.interpolate, megengine.functional.vision.interpolate.
    """
    for axis, (outputs, scale) in enumerate(zip(output_size, each(scales, x.ndim - 2), strict=True), 2):
        lower, upper, fraction = linear_taps(x.shape[axis], outputs, align_corners, scale)
        weight = fraction.astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1 - axis))
        x = x.take(lower, axis) * (1 - weight) + x.take(upper, axis) * weight
    return x


@upsample_nearest2d.onnx(since=11)  # takes sizes, and says what it rounds
def upsample_nearest2d_onnx11(g, x, output_size, scales):
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if is_symbolic((x.shape[2:], output_size)):
        return _upsampled_onnx(g, "Resize", x, output_size, scales, **attributes)
    if not all(map(survives_rounding, x.shape[2:], output_size, each(scales))):
        return _gathered(g, "Gather", x, 2, output_size, scales)
    return resized_onnx(g, x, output_size, mode="nearest", **attributes)


def _upsampled_onnx(
    g: Any, operator: str, x: Any, output_size: list[int], scales: list[float] | None, **attributes: str
) -> Any:
    """Emits Resize by scales, of which only integers reliably give the requested sizes."""
    if (factors := _factors(x.shape[2:], output_size, scales)) is None:
        return _gathered(g, "Gather", x, 2, output_size, scales)
    growth = g.const(np.array([1, 1, *factors], np.float32))
    region = [absent_input(g)] if attributes else []  # from opset 11 on
    return g.op(operator, x, *region, growth, mode="nearest", shape=g.result_types[0].shape, **attributes)


@upsample_nearest2d.onnx(since=10)  # Resize replaces Upsample
def upsample_nearest2d_onnx10(g, x, output_size, scales):
    return _upsampled_onnx(g, "Resize", x, output_size, scales)


@upsample_nearest2d.onnx(since=9)  # the scales are an input
def upsample_nearest2d_onnx9(g, x, output_size, scales):
    return _upsampled_onnx(g, "Upsample", x, output_size, scales)


@upsample_nearest2d.onnx(since=7)
def upsample_nearest2d_onnx7(g, x, output_size, scales):
    if (factors := _factors(x.shape[2:], output_size, scales)) is None:
        return _gathered(g, "Gather", x, 2, output_size, scales)
    return g.op("Upsample", x, mode="nearest", scales=[1.0, 1.0, *map(float, factors)])


@upsample_bilinear2d.onnx(since=11)
def upsample_bilinear2d_onnx11(g, x, output_size, align_corners, scales):
    if not align_corners and scales_matter(x.shape[2:], output_size, scales):
        return upsample_bilinear2d_onnx7(g, x, output_size, align_corners, scales)
    mode = "align_corners" if align_corners else "half_pixel"
    return resized_onnx(g, x, output_size, mode="linear", coordinate_transformation_mode=mode)


@upsample_bilinear2d.onnx(since=7)  # Upsample and Resize-10 know neither of the transformations
def upsample_bilinear2d_onnx7(g, x, output_size, align_corners, scales):
    return multiplied(g, x, _matrices(x.shape[2:], output_size, align_corners, scales))


def _matrices(spatial: Any, output_size: Any, align_corners: bool, scales: Any) -> list[Array]:
    return [linear_matrix(spatial[i], output_size[i], align_corners, each(scales)[i]) for i in (0, 1)]


def _gathered(
    g: Any, operator: str, x: Any, height_axis: int, output_size: list[int], scales: list[float] | None
) -> Any:
    """Gathers elements along one axis after the other."""
    if is_symbolic((x.shape[height_axis : height_axis + 2], output_size)):
        g.refuse("the copied elements depend on the dynamic size, unless the factor is an integer")
    for axis, (outputs, scale) in enumerate(zip(output_size, each(scales), strict=True), height_axis):
        places = nearest_places(x.shape[axis], outputs, scale)
        if not np.array_equal(places, np.arange(x.shape[axis])):
            shape = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
            x = g.op(operator, x, g.ints(places), axis=axis, shape=shape)
    return x


@upsample_nearest2d.tflite()
def upsample_nearest2d_tflite(g, x, output_size, scales):
    spatial = x.shape[1:3]
    if is_symbolic((spatial, output_size)) and _factors(spatial, output_size, scales) is None:
        g.refuse("the sizes are not multiples of each other")
    if not all(map(survives_rounding, spatial, output_size, each(scales))):
        return _gathered(g, "GATHER", x, 1, output_size, scales)
    return g.op("RESIZE_NEAREST_NEIGHBOR", x, g.ints(output_size), shape=g.result_types[0].shape)


@upsample_bilinear2d.tflite()
def upsample_bilinear2d_tflite(g, x, output_size, align_corners, scales):
    if not align_corners and scales_matter(x.shape[1:3], output_size, scales):
        return mixed_tflite(g, x, output_size, scales)
    return g.op(
        "RESIZE_BILINEAR",
        x,
        g.ints(output_size),
        align_corners=align_corners,
        half_pixel_centers=not align_corners,
        shape=g.result_types[0].shape,
    )


@upsample_nearest2d.caffe()
def upsample_nearest2d_caffe(g, x, output_size, scales):
    factors = _factors(x.shape[2:], output_size, scales)
    if factors is not None:
        return idioms.caffe.deconvolved(g, x, np.ones(factors, x.dtype), factors, [0, 0])
    sources = map(nearest_places, x.shape[2:], output_size, each(scales))
    matrices = [
        np.eye(extent, dtype=x.dtype)[source] for extent, source in zip(x.shape[2:], sources, strict=True)
    ]
    return idioms.caffe.mapped(g, x, *matrices)


@upsample_bilinear2d.caffe()
def upsample_bilinear2d_caffe(g, x, output_size, align_corners, scales):
    if align_corners and g.has("Interp"):
        return g.op("Interp", x, height=output_size[0], width=output_size[1], shape=g.result_types[0].shape)
    factors = _factors(x.shape[2:], output_size, None)
    if factors is None or align_corners or scales_matter(x.shape[2:], output_size, scales):
        matrices = _matrices(x.shape[2:], output_size, align_corners, scales)
        return idioms.caffe.mapped(g, x, *(matrix.astype(x.dtype) for matrix in matrices))
    for axis, factor in enumerate(factors, 2):
        if factor > 1:  # what lies outside is the edge's
            x = _with_edges_caffe(g, x, axis)
    # of the result, the parts that come of the edges are cut off like padding
    padding = [factor // 2 + (factor if factor > 1 else 0) for factor in factors]
    kernel = np.outer(*map(_triangle, factors)).astype(x.dtype)
    return idioms.caffe.deconvolved(g, x, kernel, factors, padding)


def _triangle(factor: int) -> Array:
    """Returns the kernel of linear interpolation, of 2 factor - factor % 2 elements."""
    centre = (2 * factor - factor % 2 - 1) / 2
    return 1 - abs(np.arange(2 * factor - factor % 2) - centre) / factor


def _with_edges_caffe(g: Any, x: Any, axis: int) -> Any:
    extent = x.shape[axis]
    first, last = (idioms.caffe.sliced(g, x, axis, place, place + 1) for place in (0, extent - 1))
    shape = (*x.shape[:axis], extent + 2, *x.shape[axis + 1 :])
    return g.op("Concat", first, x, last, axis=axis, shape=shape)
