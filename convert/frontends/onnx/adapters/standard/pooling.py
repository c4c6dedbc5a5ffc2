"""Pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.windows import Window, ceil_end, padded, product, window
from tmconvert.frontends.onnx.adapters.values import cast, like, rank, reshaped, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic

OPERATORS = OperatorTable()


def _with_ceil(g: Emitter, x, settings: Window, ceil_mode: int) -> Window:
    """Returns a window with the padding that ``ceil_mode`` adds at the end."""
    if not ceil_mode:
        return settings
    ends = [
        ceil_end(extent, *each)
        for extent, *each in zip(
            g.type(x).shape[2:],
            settings.kernel,
            settings.strides,
            settings.dilations,
            settings.begin,
            settings.end,
            strict=True,
        )
    ]
    return settings._replace(end=ends)


def _fits(g: Emitter, x, settings: Window) -> bool:
    """Whether PyTorch's pooling takes the window: even padding of at most half of the window, and no axis
    that is shorter than the window.
    """
    axes = zip(g.type(x).shape[2:], settings.kernel, settings.dilations, settings.begin, strict=True)
    return settings.is_even and all(
        2 * pad <= size and (is_symbolic(extent) or extent + 2 * pad > (size - 1) * dilation)
        for extent, size, dilation, pad in axes
    )


@OPERATORS.add("MaxPool")
def max_pool(
    g, X,
    *, kernel_shape, auto_pad="NOTSET", ceil_mode=0, dilations=None, pads=None, storage_order=0, strides=None,
):  # fmt: skip
    """The second result has the indices of the largest elements in the flattened input, all axes counted."""
    axes = _spatial_axes(g, X)
    settings = window(g, X, kernel_shape, strides, dilations, pads, auto_pad)
    rounds_up = bool(ceil_mode) and _fits(g, X, settings)
    if not rounds_up:
        settings = _with_ceil(g, X, settings, ceil_mode)
    dtype = g.type(X).dtype
    is_small = dtype in (np.int8, np.uint8)
    x = X if dtype.kind == "f" or is_small else cast(g, X, np.float32)
    if is_small:
        lowest: float = int(np.iinfo(dtype).min)
    else:
        lowest = float(np.finfo(g.type(x).dtype).min) if dtype.kind == "f" else -1e9
    begin = settings.begin
    if not _fits(g, X, settings):
        x, begin = padded(g, x, settings.begin, settings.end, lowest), [0] * axes
    values = (settings.kernel, settings.strides, begin, settings.dilations, rounds_up)
    made = cast(g, g.call(f"aten::max_pool{axes}d", x, *values), dtype)
    return made, lambda: _places(g, X, settings, rounds_up, storage_order)


def _places(g: Emitter, x, settings: Window, rounds_up: bool, storage_order: int) -> Any:
    """Returns the indices of the largest elements in the flattened input, all axes counted."""
    axes = rank(g, x) - 2
    if not _fits(g, x, settings) or (storage_order and axes != 2):
        raise Refusal("the indices of maxima with this padding or order are not supported")
    values = (settings.kernel, settings.strides, settings.begin, settings.dilations, rounds_up)
    _, places = g.call(f"aten::max_pool{axes}d_with_indices", x, *values)
    batch, channels, *spatial = g.type(x).shape
    if storage_order:  # the axes of a plane count in the other order
        height, width = (g.constant(extent, np.int64) for extent in spatial)
        row, column = g.call("aten::floor_divide", places, width), g.call("aten::remainder", places, width)
        places = g.call("aten::add", g.call("aten::mul", column, height), row)
    planes = g.call("aten::arange", 0, batch * channels, 1)
    starts = g.call("aten::mul", planes, g.constant(product(spatial), np.int64))
    return g.call("aten::add", places, reshaped(g, starts, [batch, channels, *[1] * axes]))


def _spatial_axes(g: Emitter, x) -> int:
    axes = rank(g, x) - 2
    if not 1 <= axes <= 3:
        raise Refusal(f"pooling over {axes} axes is not supported")
    return axes


@OPERATORS.add("AveragePool")
def average_pool(
    g, X,
    *, kernel_shape, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0, dilations=None, pads=None,
    strides=None,
):  # fmt: skip
    axes = _spatial_axes(g, X)
    given = window(g, X, kernel_shape, strides, dilations, pads, auto_pad)
    if set(given.dilations) == {1} and _fits(g, X, given):
        values = (given.kernel, given.strides, given.begin, bool(ceil_mode), bool(count_include_pad))
        return g.call(f"aten::avg_pool{axes}d", X, *values)
    settings = _with_ceil(g, X, given, ceil_mode)
    whole = _window_sum(g, X, settings, axes)
    counted = [1, 1, *g.type(X).shape[2:]]
    ones = g.call("aten::expand", like(g, X, 1), counted)
    if count_include_pad:  # what ceil_mode adds behind the padding is not counted
        ones = padded(g, ones, given.begin, given.end, 1.0)
        ends = [last - first for first, last in zip(given.end, settings.end, strict=True)]
        settings = settings._replace(begin=[0] * axes, end=ends)
    return g.call("aten::div", whole, _window_sum(g, ones, settings, axes))


def _window_sum(g: Emitter, x, settings: Window, axes: int) -> Any:
    """Returns the sum of each window, by a convolution of single channels with ones."""
    x = padded(g, x, settings.begin, settings.end, 0.0)
    batch, channels, *spatial = g.type(x).shape
    planes = reshaped(g, x, [batch * channels, 1, *spatial])
    ones = g.constant(np.ones([1, 1, *settings.kernel], g.type(x).dtype))
    values = (settings.strides, [0] * axes, settings.dilations, 1)
    made = g.call(f"aten::conv{axes}d", planes, ones, None, *values)
    return reshaped(g, made, [batch, channels, *g.type(made).shape[2:]])


@OPERATORS.add("LpPool")
def lp_pool(
    g, X, *, kernel_shape, auto_pad="NOTSET", ceil_mode=0, dilations=None, p=2, pads=None, strides=None
):
    axes = _spatial_axes(g, X)
    settings = window(g, X, kernel_shape, strides, dilations, pads, auto_pad)
    settings = _with_ceil(g, X, settings, ceil_mode)
    size = g.call("aten::abs", X)
    powers = size if p == 1 else g.call("aten::pow", size, like(g, X, p))
    whole = _window_sum(g, powers, settings, axes)
    return whole if p == 1 else g.call("aten::pow", whole, like(g, X, 1 / p))


@OPERATORS.add("GlobalAveragePool")
def global_average_pool(g, X):
    return g.call("aten::mean", X, list(range(2, rank(g, X))), True)


OPERATORS.add("GlobalMaxPool")(lambda g, X: g.call("aten::amax", X, list(range(2, rank(g, X))), True))


@OPERATORS.add("GlobalLpPool")
def global_lp_pool(g, X, *, p=2):
    return g.call("aten::linalg_vector_norm", X, p, list(range(2, rank(g, X))), True)


@OPERATORS.add("MaxUnpool")
def max_unpool(g, X, I, output_shape=None, *, kernel_shape, pads=None, strides=None):  # noqa: E741 the name in the standard
    """Writes each element to its position in the flattened output, all axes counted; zeros elsewhere."""
    axes = _spatial_axes(g, X)
    strides, pads = strides or [1] * axes, pads or [0] * 2 * axes
    batch, channels, *spatial = g.type(X).shape
    made = [
        (extent - 1) * strides[axis] - pads[axis] - pads[axis + axes] + kernel_shape[axis]
        for axis, extent in enumerate(spatial)
    ]
    shape = [batch, channels, *made]
    if output_shape is not None and static_ints(g, output_shape, "the shape of MaxUnpool") != shape:
        raise Refusal(
            f"MaxUnpool to another shape than {shape}: ONNX counts the positions in that one, "
            "ONNX Runtime in the shape that is made"
        )
    zeros = g.call("aten::expand", like(g, X, 0), [product(shape)])
    flat = [reshaped(g, each, [-1]) for each in (I, X)]
    return reshaped(g, g.call("aten::scatter", zeros, 0, *flat), shape)
