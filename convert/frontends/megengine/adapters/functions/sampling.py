"""megengine.functional.vision: remap, warps, roi_align and colour conversion.

Images in NHWC with one to three channels are processed by OpenCV's methods, which round positions to 1/32 of
a pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import cast, is_tensor, per_axis, reshaped, static_ints
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

FUNCTIONS = Table("megengine.functional.vision.")

STEPS = 32  # of a pixel, to OpenCV
FIXED = 1024  # units of OpenCV's fixed-point numbers
OPENCV_CHANNELS = (1, 2, 3)


@FUNCTIONS.add("remap")
def remap(g, inp, map_xy, border_mode="replicate", scalar=0.0, interp_mode="linear"):
    return _sampled(g, inp, map_xy, None, border_mode, scalar, interp_mode)


def _sampled(g: Emitter, inp, places, batch, border: str, value: float, mode: str) -> Any:
    if border.lower() not in ("replicate", "reflect", "reflect_101", "wrap", "constant"):
        raise Refusal(f"the border mode {border!r} is not supported")
    if mode.lower() not in ("nearest", "linear"):
        raise Refusal(f"the interpolation mode {mode!r} is not supported", "use 'linear'")
    type_ = g.type(inp)
    if type_.dtype not in (np.float32, np.float16):
        raise Refusal(f"images must hold floats, not {type_}", "convert them by astype")
    result = g.call("tm::remap", cast(g, inp, np.float32), places, batch, border.lower(), value, mode.lower())
    return cast(g, result, type_.dtype)


@FUNCTIONS.add("warp_affine")
def warp_affine(
    g, inp, mat, out_shape, border_mode="replicate", border_val=0.0, format="NHWC", interp_mode="linear"
):
    """Pixel (x, y) of the result is that of the input at mat (x, y, 1)."""
    x = _channels_first(g, inp, format)
    if g.type(mat).shape[1:] != (2, 3) or interp_mode.lower() != "linear":
        raise Refusal(f"warp_affine by {g.type(mat)} with mode {interp_mode!r} is not supported")
    size, places = _size(g, out_shape), []
    for row in (0, 1):
        m = [_entry(g, mat, row, column) for column in (0, 1, 2)]
        if _is_by_opencv(g, x, format):
            across = (m[0] * _columns(g, size) * FIXED).round()
            down = ((m[1] * _rows(g, size) + m[2]) * FIXED).round()
            place = ((across + down + FIXED / STEPS / 2) / (FIXED / STEPS)).floor() / STEPS
        else:
            place = m[0] * _columns(g, size) + m[1] * _rows(g, size) + m[2]
        places.append(place)
    made = _sampled(g, x, _joined(g, places, size), None, border_mode, border_val, interp_mode)
    return made if format == "NCHW" else g.call("aten::permute", made, [0, 2, 3, 1])


@FUNCTIONS.add("warp_perspective")
def warp_perspective(
    g, inp, mat, out_shape, mat_idx=None, border_mode="replicate", border_val=0.0, format="NCHW",
    interp_mode="linear",
):  # fmt: skip
    """Pixel (x, y) of the result is that of the input at mat (x, y, 1), divided by its third entry."""
    x = _channels_first(g, cast(g, inp, np.float32) if g.type(inp).dtype == np.float16 else inp, format)
    if g.type(mat).shape[1:] != (3, 3) or interp_mode.lower() != "linear":
        raise Refusal(f"warp_perspective by {g.type(mat)} with mode {interp_mode!r} is not supported")
    size = _size(g, out_shape)
    is_by_opencv = _is_by_opencv(g, x, format)
    mat = cast(g, mat, np.float64 if is_by_opencv else np.float32)
    sums = []
    for row in (0, 1, 2):
        m = [_entry(g, mat, row, column) for column in (0, 1, 2)]
        sums.append(m[0] * _columns(g, size) + m[1] * _rows(g, size) + m[2])
    places = [each / sums[2] for each in sums[:2]]
    if is_by_opencv:
        places = [(place * STEPS).round() / STEPS for place in places]
    batch = None
    if mat_idx is not None:
        batch = mat_idx if is_tensor(mat_idx) else g.constant(static_ints(g, mat_idx, "an image"), np.int32)
    made = _sampled(g, x, _joined(g, places, size), batch, border_mode, border_val, interp_mode)
    return made if format == "NCHW" else g.call("aten::permute", made, [0, 2, 3, 1])


def _channels_first(g: Emitter, x, format_: str) -> Any:
    if format_ not in ("NCHW", "NHWC") or len(g.type(x).shape) != 4:
        raise Refusal(f"images {g.type(x)} in format {format_!r} are not supported")
    return x if format_ == "NCHW" else g.call("aten::permute", x, [0, 3, 1, 2])


def _is_by_opencv(g: Emitter, x, format_: str) -> bool:
    return format_ == "NHWC" and g.type(x).shape[1] in OPENCV_CHANNELS


def check_channels_last(g: Emitter, inp, mode: str) -> None:
    """Raises Refusal where MegEngine's NHWC result differs from that of NCHW."""
    type_ = g.type(inp)
    if (type_.dtype.kind != "f" and mode != "nearest") or (
        mode == "bicubic" and type_.shape[-1] not in OPENCV_CHANNELS
    ):
        raise Refusal(f"{mode} interpolation of {type_} in format 'NHWC' is not supported", "use NCHW")


def _size(g: Emitter, out_shape) -> list[int]:
    size = static_ints(g, out_shape, "the size of an image")
    if len(size) != 2 or min(size) < 1:
        raise Refusal(f"an image size must be two integers, got {size}")
    return size


def _entry(g: Emitter, mat, row: int, column: int) -> Term:
    """[N, 1, 1]: one entry of each matrix, in float64 for compatibility with OpenCV."""
    number = g.call("aten::select", g.call("aten::select", mat, 1, row), 1, column)
    return Term(g, g.call("aten::reshape", number, [g.type(mat).shape[0], 1, 1]))


def _columns(g: Emitter, size: list[int]) -> np.ndarray:
    return np.arange(size[1]).reshape(1, 1, -1)


def _rows(g: Emitter, size: list[int]) -> np.ndarray:
    return np.arange(size[0]).reshape(1, -1, 1)


def _joined(g: Emitter, places: list[Term], size: list[int]) -> Any:
    """[N, h, w, 2] from x and y."""
    parts = []
    for place in places:
        count = place.type.shape[0]
        full = g.call("aten::expand", place.to("float32").value, [count, *size])
        parts.append(g.call("aten::reshape", full, [count, *size, 1]))
    return g.call("aten::cat", parts, 3)


@FUNCTIONS.add("roi_align")
def roi_align(g, inp, rois, output_shape, mode="average", spatial_scale=1.0, sample_points=2, aligned=True):
    """Mean or maximum of linearly interpolated samples in each bin of a box, zero outside.

    ``rois`` are rows of the image's number, x1, y1, x2, y2. A box that ends before it begins has no size.
    """
    if mode.lower() not in ("average", "max"):
        raise Refusal(f"the pooling mode {mode!r} is not supported", "use 'average' or 'max'")
    (rows, columns), samples = per_axis(g, output_shape, 2), per_axis(g, sample_points, 2)
    count = g.type(rois).shape[0]
    boxes = Term(g, rois) * spatial_scale - (0.5 if aligned else 0.0)
    places = []
    for start, parts, each in ((1, columns, samples[1]), (2, rows, samples[0])):
        low, high = (Term(g, g.call("aten::slice", boxes.value, 1, i, i + 1)) for i in (start, start + 2))
        extent = (high - low).clamp(min=0)
        steps = (np.arange(parts * each) + 0.5) / (parts * each)
        places.append(low + extent * steps.reshape(1, -1))
    x = Term(g, reshaped(g, places[0].value, [count, 1, columns * samples[1]]))
    y = Term(g, reshaped(g, places[1].value, [count, rows * samples[0], 1]))
    coordinates = _joined(g, [x, y], [rows * samples[0], columns * samples[1]])
    batch = cast(g, g.call("aten::select", rois, 1, 0), np.int32)
    taken = _sampled(g, cast(g, inp, np.float32), coordinates, batch, "constant", 0.0, "linear")
    if mode.lower() == "max":
        return g.call("aten::max_pool2d", taken, samples, samples)
    return g.call("aten::avg_pool2d", taken, samples, samples)


@FUNCTIONS.add("cvt_color")
def cvt_color(g, inp, mode=""):
    """Converts images [N, H, W, C] of floats from 0 to 1, or of bytes, to other colour spaces."""
    name, type_ = mode.upper(), g.type(inp)
    if name not in COLOURS or not (type_.dtype.kind == "f" or type_.dtype == np.uint8):
        raise Refusal(
            f"cvt_color with mode {mode!r} of {type_} is not supported",
            f"use {', '.join(COLOURS)} on floats or uint8",
        )
    if type_.dtype == np.uint8:
        return cast(g, _mixed_bytes(g, cast(g, inp, np.float32), name), np.uint8)
    matrix, shift = (np.array(part, type_.dtype) for part in COLOURS[name])
    return g.call("aten::linear", inp, g.constant(matrix), g.constant(shift))


def _mixed_bytes(g: Emitter, colours, mode: str) -> Any:
    """Weighted sums in fixed point, rounded half up; below 2**24 float32 is exact."""
    if mode == "RGB2YUV":  # the others are made of the luma after it is rounded
        colours = g.call("aten::cat", [colours, _mixed_bytes(g, colours, "BGR2GRAY")], 3)
    matrix, shift = (np.array(part, np.float32) for part in COLOURS_OF_BYTES[mode])
    mixed = g.call("aten::linear", colours, g.constant(matrix), g.constant(shift * ONE + ONE // 2))
    return (Term(g, mixed) / ONE).floor().clamp(min=0, max=255).value


# mode: (matrix, shift), of which the result is matrix colour + shift
COLOURS = {
    "RGB2GRAY": ([[0.299, 0.587, 0.114]], [0]),
    "BGR2GRAY": ([[0.114, 0.587, 0.299]], [0]),
    "GRAY2RGB": ([[1], [1], [1]], [0, 0, 0]),
    "RGB2YUV": (
        [[0.114, 0.587, 0.299], [0.435912, -0.288804, -0.147108], [-0.099978, -0.514799, 0.614777]],
        [0, 0.5, 0.5],
    ),
    "YUV2RGB": ([[1, 2.032, 0], [1, -0.395, -0.581], [1, 0, 1.14]], [-1.016, 0.488, -0.57]),
}
ONE = 1 << 14  # as a fixed-point number
# the same for bytes, the matrix in fixed-point numbers; RGB2YUV has the luma behind its colours
COLOURS_OF_BYTES = {
    "RGB2GRAY": ([[4899, 9617, 1868]], [0]),
    "BGR2GRAY": ([[1868, 9617, 4899]], [0]),
    "GRAY2RGB": ([[ONE], [ONE], [ONE]], [0, 0, 0]),
    "RGB2YUV": ([[0, 0, 0, ONE], [8061, 0, 0, -8061], [0, 0, 14369, -14369]], [0, 128, 128]),
    "YUV2RGB": (
        [[ONE, 33292, 0], [ONE, -6472, -9519], [ONE, 0, 18678]],
        [-128 * 33292 / ONE, 128 * (6472 + 9519) / ONE, -128 * 18678 / ONE],
    ),
}
