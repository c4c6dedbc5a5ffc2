"""aten::im2col and aten::col2im: windows over H and W as columns, and their sums (unfold and fold)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.journal import validated
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import ANY_DTYPE, FLOATS, Op, Tensor, integers
from tmconvert.symbolics.results import window_extent
from tmconvert.symbolics.windows import gathered, last_axes, scattered, widened

Array = np.ndarray
Ints = list[int]


def _outputs(extents: Any, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Ints:
    if min(*kernel_size, *dilation, *stride) < 1 or min(padding) < 0:
        raise ValueError(f"kernel {kernel_size}, dilation {dilation} or stride {stride} is not positive")
    return list(map(window_extent, extents, kernel_size, stride, padding, dilation))


def _im2col_result(
    x: TensorType, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> TensorType:
    count = math.prod(_outputs(x.shape[2:], kernel_size, dilation, padding, stride))
    return TensorType(x.dtype, (x.shape[0], x.shape[1] * math.prod(kernel_size), count))


def _col2im_result(
    x: TensorType, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> TensorType:
    counts, taps = _outputs(output_size, kernel_size, dilation, padding, stride), math.prod(kernel_size)
    if x.shape[1] % taps or x.shape[2] != math.prod(counts):
        raise ValueError(f"x {x} does not fit {counts} windows of {taps} elements")
    return TensorType(x.dtype, (x.shape[0], x.shape[1] // taps, *output_size))


WINDOWS = [
    integers("kernel_size", length=2),
    integers("dilation", length=2),
    integers("padding", length=2),
    integers("stride", length=2),
]
im2col = Op("aten::im2col", args=[Tensor("x", ANY_DTYPE, ranks=(4,)), *WINDOWS], result=_im2col_result)
col2im = Op(
    "aten::col2im",
    args=[Tensor("x", FLOATS, ranks=(3,)), integers("output_size", length=2), *WINDOWS],
    result=_col2im_result,
)
OPS = [im2col, col2im]


@im2col.reference
def im2col_ref(x: Array, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Array:
    """Shapes: x [N, C, H, W] -> [N, C kH kW, windows]. Source: torch.nn.functional.unfold."""
    windows = gathered(widened(x, padding, padding), kernel_size, stride, dilation)
    rows = x.shape[1] * math.prod(kernel_size)
    count = math.prod(windows.shape[2:4])
    return windows.transpose(0, 1, 4, 5, 2, 3).reshape(x.shape[0], rows, count)


@col2im.reference
def col2im_ref(
    x: Array, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Array:
    """Shapes: x [N, C kH kW, windows] -> [N, C, H, W]. Source: torch.nn.functional.fold."""
    outputs = _outputs(output_size, kernel_size, dilation, padding, stride)
    windows = x.reshape(x.shape[0], -1, *kernel_size, *outputs).transpose(0, 1, 4, 5, 2, 3)
    extents = [extent + 2 * amount for extent, amount in zip(output_size, padding, strict=True)]
    sums = scattered(windows, extents, stride, dilation)
    inner = [slice(amount, amount + extent) for amount, extent in zip(padding, output_size, strict=True)]
    return last_axes(sums, inner)


@im2col.decompose
def im2col_slices(g, x, kernel_size, dilation, padding, stride):
    """Slices once per kernel row, then once per kernel column."""
    batch, channels, *extents = g.type(x).shape
    height, width = validated(lambda: _outputs(extents, kernel_size, dilation, padding, stride))
    if any(padding):
        x = g.call("aten::pad", x, [0, 0, 0, 0, padding[0], padding[0], padding[1], padding[1]])
    across = g.type(x).shape[3]
    for axis, count, shape in (
        (2, height, [batch, channels, 1, height, across]),
        (4, width, [batch, channels, kernel_size[0], 1, height, width]),
    ):
        i = axis // 2 - 1
        taps = [
            g.call("aten::slice", x, axis, first, first + (count - 1) * stride[i] + 1, stride[i])
            for first in range(0, kernel_size[i] * dilation[i], dilation[i])
        ]
        x = g.call("aten::cat", [g.call("aten::reshape", tap, shape) for tap in taps], axis - axis // 4)
    return g.call("aten::reshape", x, [batch, channels * math.prod(kernel_size), height * width])


@col2im.onnx(since=18)
def col2im_onnx18(g, x, output_size, kernel_size, dilation, padding, stride):
    return g.op(
        "Col2Im",
        x,
        g.ints(output_size),
        g.ints(kernel_size),
        dilations=dilation,
        pads=padding + padding,
        strides=stride,
    )


@col2im.decompose
def col2im_as_conv_transpose(g, x, output_size, kernel_size, dilation, padding, stride):
    """Transposed convolution whose kernel has a single 1 per kernel position."""
    type_ = g.type(x)
    batch, taps = type_.shape[0], math.prod(kernel_size)
    channels = type_.shape[1] // taps
    outputs = _outputs(output_size, kernel_size, dilation, padding, stride)
    places = np.tile(np.eye(taps, dtype=type_.dtype), (channels, 1)).reshape(-1, 1, *kernel_size)
    after = [
        extent + 2 * amount - (count - 1) * step - spread * (kernel - 1) - 1
        for extent, amount, count, step, spread, kernel in zip(
            output_size, padding, outputs, stride, dilation, kernel_size, strict=True
        )
    ]
    x = g.call("aten::reshape", x, [batch, channels * taps, *outputs])
    weight = g.constant(places)
    return g.call("aten::conv_transpose2d", x, weight, None, stride, padding, after, channels, dilation)
