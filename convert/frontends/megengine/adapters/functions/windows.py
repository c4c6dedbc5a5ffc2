"""megengine.functional.nn: pooling, sliding windows, pixel shuffle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions.convolutions import columns_of
from tmconvert.frontends.megengine.adapters.values import per_axis, reshaped, static_int, static_ints
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic

FUNCTIONS = Table("megengine.functional.nn.")


def _windows(
    g: Emitter, inp, kernel_size, stride, padding, fill: float | None
) -> tuple[Any, list[int], list[int], list[int]]:
    """Returns (input, kernel, stride, padding) of pooling.

    MegEngine takes a padding as large as the window and more: the input is padded with ``fill`` then.
    """
    kernel, amounts = per_axis(g, kernel_size, 2), per_axis(g, padding, 2)
    steps = kernel if stride is None else per_axis(g, stride, 2)
    if all(amount < size for amount, size in zip(amounts, kernel, strict=True)):
        return inp, kernel, steps, amounts
    if fill is None:
        raise Refusal(
            (f"windows of {kernel} are entirely inside the padding {amounts}"), "use a smaller padding"
        )
    rows, columns = amounts
    inp = g.call("aten::pad", inp, [0, 0, 0, 0, rows, rows, columns, columns], value=fill)
    return inp, kernel, steps, [0, 0]


@FUNCTIONS.add("max_pool2d")
def max_pool2d(g, inp, kernel_size, stride=None, padding=0):
    dtype = g.type(inp).dtype
    lowest = float(np.finfo(dtype).min) if dtype.kind == "f" else float(np.iinfo(dtype).min)
    return g.call("aten::max_pool2d", *_windows(g, inp, kernel_size, stride, padding, lowest))


@FUNCTIONS.add("avg_pool2d")
def avg_pool2d(g, inp, kernel_size, stride=None, padding=0, mode="average_count_exclude_padding"):
    """The default mode does not count padding."""
    modes = {"average_count_exclude_padding": False, "average": True}
    counted = modes.get(str(mode).lower())
    if counted is None:
        raise Refusal(f"the pooling mode {mode!r} is not supported")
    if g.type(inp).dtype.kind != "f":
        raise Refusal(
            (f"avg_pool2d of {g.type(inp).dtype} rounds in MegEngine, which is not supported"), "pool floats"
        )
    windows = _windows(g, inp, kernel_size, stride, padding, 0.0 if counted else None)
    return g.call("aten::avg_pool2d", *windows, count_include_pad=counted)


def _adaptive(g: Emitter, inp, oshp, pool: Callable[..., Any], over: str) -> Any:
    """MegEngine's adaptive windows are uniform: stride in // out, kernel in - (out - 1) stride."""
    sizes = static_ints(g, oshp)
    outputs = sizes * 2 if len(sizes) == 1 else sizes
    extents = g.type(inp).shape[2:]
    if len(outputs) != 2 or any(
        out < 1 or out > extent for out, extent in zip(outputs, extents, strict=True)
    ):
        raise Refusal(f"cannot pool {list(extents)} to {outputs}")
    if outputs == [1, 1] and is_symbolic(list(extents)):
        return g.call(over, inp, [2, 3], True)  # a kernel has a size in numbers
    stride = [extent // out for extent, out in zip(extents, outputs, strict=True)]
    kernel = [extent - (out - 1) * step for extent, out, step in zip(extents, outputs, stride, strict=True)]
    return pool(g, inp, kernel, stride)


@FUNCTIONS.add("adaptive_avg_pool2d")
def adaptive_avg_pool2d(g, inp, oshp):
    return _adaptive(g, inp, oshp, avg_pool2d, "aten::mean")


@FUNCTIONS.add("adaptive_max_pool2d")
def adaptive_max_pool2d(g, inp, oshp):
    return _adaptive(g, inp, oshp, max_pool2d, "aten::amax")


@FUNCTIONS.add("sliding_window")
def sliding_window(g, inp, kernel_size, padding=0, stride=1, dilation=1):
    """(N, C, H, W) -> (N, C, H', W', kH, kW)."""
    batch, channels, *extents = g.type(inp).shape
    kernel = per_axis(g, kernel_size, 2)
    columns = columns_of(g, inp, kernel, stride, padding, dilation)
    windows = (per_axis(g, value, 2) for value in (padding, stride, dilation))
    outputs = _counts(extents, kernel, *windows)
    columns = reshaped(g, columns, [batch, channels, *kernel, *outputs])
    return g.call("aten::permute", columns, [0, 1, 4, 5, 2, 3])


def _counts(extents: Any, *windows: list[int]) -> list[int]:
    """Returns the number of windows for kernel, padding, stride and dilation."""
    return [
        (extent + 2 * amount - spread * (size - 1) - 1) // step + 1
        for extent, size, amount, step, spread in zip(extents, *windows, strict=True)
    ]


@FUNCTIONS.add("sliding_window_transpose")
def sliding_window_transpose(g, inp, output_size, kernel_size, padding=0, stride=1, dilation=1):
    """(N, C, H', W', kH, kW) -> (N, C, H, W): sums of overlapping elements."""
    if g.type(inp).dtype.kind != "f":
        raise Refusal(
            f"sliding_window_transpose of {g.type(inp).dtype} is not supported", "cast it to float32"
        )
    batch, channels, height, width, *kernel = g.type(inp).shape
    columns = g.call("aten::permute", inp, [0, 1, 4, 5, 2, 3])
    columns = reshaped(g, columns, [batch, channels * math.prod(kernel), height * width])
    sizes = (output_size, padding, stride, dilation)
    output, around, steps, spread = (per_axis(g, value, 2) for value in sizes)
    return g.call("aten::col2im", columns, output, per_axis(g, kernel_size, 2), spread, around, steps)


@FUNCTIONS.add("pixel_shuffle", "layerPixelShuffle_traceable")
def pixel_shuffle(g, inp, upscale_factor):
    return g.call("aten::pixel_shuffle", inp, static_int(g, upscale_factor, "a factor"))
