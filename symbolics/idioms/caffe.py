"""Shared by Caffe symbolics: broadcasting by Scale layers, since Caffe layers do not broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.symbolics.results import around

if TYPE_CHECKING:
    from tmconvert.lowering.builder import Builder
    from tmconvert.lowering.target_graph import Value


MOST_COPIED = 1 << 18  # elements of a kernel, a copy for each group


def covered_axes(shape: Sequence[int], full: Sequence[int]) -> tuple[int, int]:
    """Returns the range [first, end) of axes in which ``shape`` (of the rank of ``full``) is not 1.

    A Scale layer's second operand must cover a contiguous range of axes of the first.
    """
    varying = [axis for axis, extent in enumerate(shape) if extent != 1]
    return (varying[0], varying[-1] + 1) if varying else (0, 0)


def padded_shape(x: Value, rank: int) -> tuple[int, ...]:
    """Returns the shape of ``x`` with leading ones up to ``rank``."""
    return (1,) * (rank - len(x.shape)) + x.shape


def reshaped(g: Builder, x: Value, shape: Sequence[int]) -> Value:
    """Reshapes ``x``: a view where it is constant, else a Reshape layer.

    A first axis that stays is copied, so that the layer is right at other batch sizes, too.
    """
    if tuple(shape) == x.shape:
        return x
    if x.data is not None:
        return g.const(x.data.reshape(shape), name=x.name)
    keeps_batch = len(shape) > 0 and x.shape[:1] == tuple(shape[:1])
    dims: Any = {"shape.dim": [0, *shape[1:]] if keeps_batch else list(shape)}
    return g.op("Reshape", x, **dims, shape=shape)


def scaled(g: Any, x: Value, gamma: np.ndarray | None, beta: np.ndarray | None) -> Value:
    """x * gamma + beta with constants that broadcast to the shape of ``x`` (equal rank)."""
    constants = [value for value in (gamma, beta) if value is not None]
    if all(value.size == 1 for value in constants):
        scale = 1.0 if gamma is None else float(gamma.reshape(-1)[0])
        shift = 0.0 if beta is None else float(beta.reshape(-1)[0])
        return g.op("Power", x, power=1.0, scale=scale, shift=shift)
    first, end = covered_axes(np.broadcast_shapes(*(value.shape for value in constants)), x.shape)
    block = x.shape[first:end]
    gamma = np.ones((1,) * len(x.shape), x.dtype) if gamma is None else gamma
    blobs = [
        np.broadcast_to(value.reshape(value.shape[first:end]), block)
        for value in (gamma, beta)
        if value is not None
    ]
    # OpenCV fuses any Scale after a convolution into it as if it were per channel: such a Scale gets the
    # covered axes, and a copy of the constants for each part before them, as channels of a reshaped blob.
    batch, outer = leading(x.shape, first)
    if outer * math.prod(block) > MOST_COPIED:
        batch, outer = batch * outer, 1
    channels, inner = outer * math.prod(block), math.prod(x.shape[end:])
    flat = x if (first, end) == (1, 2) else reshaped(g, x, [batch, channels, inner, 1])
    result = g.op(
        "Scale",
        flat,
        *(g.const(np.tile(np.reshape(blob, -1), outer)) for blob in blobs),
        axis=1,
        bias_term=len(blobs) == 2,
        shape=flat.shape,
    )
    return reshaped(g, result, x.shape)


def leading(shape: Sequence[int], end: int) -> tuple[int, int]:
    """Returns the batch size, and the number of elements of the other axes before ``end``.

    >>> leading((2, 3, 5, 7), 3)
    (2, 15)
    """
    return (shape[0], math.prod(shape[1:end])) if end else (1, 1)


def at_least(g: Builder, x: Value, bound: float) -> Value:
    """max(x, bound)."""
    if bound == 0:
        return g.op("ReLU", x)
    return g.op("Eltwise", x, g.op("Power", x, scale=0.0, shift=bound), operation="MAX")


def multiplied(g: Any, x: Value, factor: Value) -> Value:
    """x * factor where the computed ``factor`` broadcasts to the shape of ``x``."""
    shape = padded_shape(factor, len(x.shape))
    if len(shape) == 1:  # an Eltwise of OpenCV mistakes computed blobs of one axis
        rows = [reshaped(g, value, (1, value.shape[0])) for value in (x, reshaped(g, factor, shape))]
        return reshaped(g, multiplied(g, *rows), x.shape)
    if not g.allows("Scale", "bottoms", 2):
        return g.op("Eltwise", x, spread(g, factor, x.shape), operation="PROD")
    first, end = covered_axes(shape, x.shape)
    if first == end:  # one element, along some axis: the shortest takes the fewest copies
        first = x.shape.index(min(x.shape))
        end = first + 1
    if x.shape[0] == 1:  # chips keep the first axis
        first = 0
    for axis in range(first, end):
        if shape[axis] != x.shape[axis]:  # between axes in which it varies: Scale wants neighbours
            factor = repeated(g, reshaped(g, factor, shape), axis, x.shape[axis])
            shape = factor.shape
    block = reshaped(g, factor, shape[first:end])
    if block.shape == x.shape:
        return g.op("Eltwise", x, block, operation="PROD")
    return g.op("Scale", x, block, axis=first, shape=x.shape)


def repeated(g: Any, x: Value, axis: int, times: int) -> Value:
    """Repeats ``x``, of extent 1 along ``axis``, ``times``: by a 1x1 convolution of ones."""
    return mapped_along(g, x, axis, np.ones((times, 1), np.float32))


def mapped_along(g: Any, x: Value, axis: int, matrix: np.ndarray) -> Value:
    """Multiplies ``matrix`` [m, n] by the n elements along ``axis``: by a 1x1 convolution.

    The axes between the batch and ``axis`` are groups of it, each with a copy of the weights; they are part
    of the batch where these would be too many.
    """
    outputs, extent = matrix.shape
    batch, groups = leading(x.shape, axis)
    inner = math.prod(x.shape[axis + 1 :])
    if groups > 1 and (groups * matrix.size > MOST_COPIED or not g.allows("Convolution", "group", groups)):
        if axis > 1 and not g.allows("Convolution", "batch axis", batch):
            return _mapped_channels(g, x, axis, matrix)
        batch, groups = batch * groups, 1
    kernel = np.tile(np.asarray(matrix, np.float32), (groups, 1))
    made = g.op(
        "Convolution",
        reshaped(g, x, (batch, groups * extent, 1, inner)),
        g.const(kernel.reshape(*kernel.shape, 1, 1)),
        num_output=groups * outputs,
        bias_term=False,
        kernel_h=1,
        kernel_w=1,
        group=groups if groups > 1 else None,
        shape=(batch, groups * outputs, 1, inner),
    )
    return reshaped(g, made, (*x.shape[:axis], outputs, *x.shape[axis + 1 :]))


def _mapped_channels(g: Any, x: Value, axis: int, matrix: np.ndarray, bias: Value | None = None) -> Value:
    """Multiplies ``matrix`` along ``axis``: a Permute makes it the channels of a 1x1 convolution."""
    batch, outer = leading(x.shape, axis)
    (outputs, extent), inner = matrix.shape, math.prod(x.shape[axis + 1 :])
    x, shape = reshaped(g, x, (batch, outer, extent, inner)), (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
    x = g.op("Permute", x, order=[0, 2, 1, 3], shape=(batch, extent, outer, inner))
    x = g.op(
        "Convolution",
        x,
        g.const(np.asarray(matrix, np.float32)[:, :, None, None]),
        bias,
        num_output=outputs,
        bias_term=bias is not None,
        kernel_h=1,
        kernel_w=1,
        shape=(batch, outputs, outer, inner),
    )
    x = g.op("Permute", x, order=[0, 2, 1, 3], shape=(batch, outer, outputs, inner))
    return reshaped(g, x, shape)


def product_along_last(g: Any, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """x @ weight^T + bias, by an InnerProduct, or by a 1x1 convolution where that takes no such axis."""
    axis, outputs = len(x.shape) - 1, weight.shape[0]
    shape = (*x.shape[:-1], outputs)
    if axis > 1 and not g.allows("InnerProduct", "axis", axis):
        return _mapped_channels(g, x, axis, np.asarray(weight.data), bias)
    if axis > 2 and not g.allows("InnerProduct", "axis of images", axis):
        rows = reshaped(g, x, (x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1]))
        return reshaped(g, product_along_last(g, rows, weight, bias), shape)
    sizes = {"num_output": outputs, "bias_term": bias is not None}
    return g.op("InnerProduct", x, weight, bias, **sizes, axis=axis, shape=shape)


def spread(g: Any, x: Value, shape: Sequence[int]) -> Value:
    """Broadcasts ``x`` to ``shape``."""
    x = reshaped(g, x, padded_shape(x, len(shape)))
    for axis, extent in enumerate(shape):
        if x.shape[axis] != extent:
            x = repeated(g, x, axis, extent)
    return x


def expanded(g: Any, x: Value, like: Value) -> Value:
    """Broadcasts ``x`` to the shape of ``like``: ones of that shape, times ``x``."""
    if x.shape == like.shape:
        return x
    ones = g.op("Power", like, power=1.0, scale=0.0, shift=1.0)
    return multiplied(g, ones, x)


def cut(g: Any, x: Value, axis: int, points: Sequence[int]) -> list[Value]:
    """Splits ``x`` along ``axis`` at ``points``."""
    bounds = [0, *points, x.shape[axis]]
    if not g.has("Slice"):
        return [_selected(g, x, axis, start, end) for start, end in pairwise(bounds)]
    shapes = [(*x.shape[:axis], end - start, *x.shape[axis + 1 :]) for start, end in pairwise(bounds)]
    return g.op("Slice", x, axis=axis, slice_point=list(points), shapes=shapes)


def sliced(g: Any, x: Value, axis: int, start: int, end: int) -> Value:
    """Slices ``x`` from ``start`` to ``end`` along ``axis``; tops with the rest stay unused."""
    points = [point for point in (start, end) if 0 < point < x.shape[axis]]
    if points and not g.has("Slice"):
        return _selected(g, x, axis, start, end)
    return cut(g, x, axis, points)[1 if start > 0 else 0] if points else x


def _selected(g: Any, x: Value, axis: int, start: int, end: int) -> Value:
    """Slices by a depthwise convolution: its only window that is not zero begins at ``start``.

    What it leaves out must be finite, since it is multiplied by zero.
    """
    batch, outer = leading(x.shape, axis)
    extent, count, inner = x.shape[axis], end - start, math.prod(x.shape[axis + 1 :])
    kernel = np.zeros((outer, 1, extent - count + 1, 1), np.float32)
    kernel[:, :, start] = 1
    made = g.op(
        "Convolution",
        reshaped(g, x, (batch, outer, extent, inner)),
        g.const(kernel),
        num_output=outer,
        bias_term=False,
        kernel_h=extent - count + 1,
        kernel_w=1,
        group=outer if outer > 1 else None,
        shape=(batch, outer, count, inner),
    )
    return reshaped(g, made, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def pooled(
    g: Any, x: Value, method: str, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    outputs: Sequence[int],
) -> Value:  # fmt: skip
    """Pools ``x`` [N, C, H, W] to ``outputs`` [H', W'].

    Caffe rounds the number of windows up, and drops the last one if it starts in the padding behind
    the end. No window depends on how many follow, so those too many are cut off; dialects with
    ceil_mode do not make them.
    """
    is_global = not any(padding) and list(kernel) == list(x.shape[2:])
    if is_global and g.has("Pooling", "global_pooling"):
        return g.op("Pooling", x, pool=method, global_pooling=True, shape=(*x.shape[:2], 1, 1))
    floors = [(x.shape[2 + i] + 2 * padding[i] - kernel[i]) // stride[i] + 1 for i in (0, 1)]
    modes: dict[str, Any] = {}
    for mode, value in (("ceil_mode", False), ("torch_pooling", True)):
        if floors == list(outputs) and g.has("Pooling", mode):
            modes[mode] = value
    made = list(outputs)
    for i in () if modes else (0, 1):
        extent = x.shape[2 + i]
        count = -(-(extent + 2 * padding[i] - kernel[i]) // stride[i]) + 1
        if (count - 1) * stride[i] >= extent + padding[i]:
            count -= 1
            if not padding[i]:  # BVLC keeps the window unless the other axis has padding, OpenCV always
                x = sliced(g, x, 2 + i, 0, (count - 1) * stride[i] + kernel[i])
        made[i] = count
    result = g.op(
        "Pooling",
        x,
        pool=method,
        kernel_h=kernel[0],
        kernel_w=kernel[1],
        stride_h=stride[0],
        stride_w=stride[1],
        pad_h=padding[0],
        pad_w=padding[1],
        shape=(*x.shape[:2], *made),
        **modes,
    )
    return sliced(g, sliced(g, result, 2, 0, outputs[0]), 3, 0, outputs[1])


def as_rows(g: Builder, x: Value, first: int, end: int) -> Value:
    """Reshapes ``x`` to [batch, channels, axes, inner], so that the axes [first, end) become the height."""
    outer, extent, inner = around(x.shape, first, end)
    batch = (first and x.shape[0]) or 1  # chips keep the first axis
    return reshaped(g, x, (batch, outer // batch, extent, inner))


def deconvolved(
    g: Builder, x: Value, kernel: np.ndarray, stride: Sequence[int], padding: Sequence[int]
) -> Value:
    """Transposed convolution of ``x`` [N, C, H, W] with ``kernel``.

    ``padding`` is the number of elements removed on each side of the result.
    """
    batch, channels = x.shape[:2]
    outputs = [(x.shape[2 + i] - 1) * stride[i] + kernel.shape[i] - 2 * padding[i] for i in (0, 1)]
    return g.op(
        "Deconvolution",
        x,
        g.const(np.broadcast_to(kernel, (channels, 1, *kernel.shape))),
        num_output=channels,
        bias_term=False,
        kernel_h=kernel.shape[0],
        kernel_w=kernel.shape[1],
        stride_h=stride[0],
        stride_w=stride[1],
        pad_h=padding[0],
        pad_w=padding[1],
        group=channels,
        shape=(batch, channels, *outputs),
    )


def averaged(g: Any, x: Value, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> Value:
    """Averages the windows of ``x`` [N, C, H, W] and of its zero padding, by a depthwise convolution."""
    channels = x.shape[1]
    outputs = [(x.shape[2 + i] + 2 * padding[i] - kernel[i]) // stride[i] + 1 for i in (0, 1)]
    return g.op(
        "Convolution",
        x,
        g.const(np.full((channels, 1, *kernel), 1 / math.prod(kernel), np.float32)),
        num_output=channels,
        bias_term=False,
        kernel_h=kernel[0],
        kernel_w=kernel[1],
        stride_h=stride[0],
        stride_w=stride[1],
        pad_h=padding[0],
        pad_w=padding[1],
        group=channels,
        shape=(*x.shape[:2], *outputs),
    )


def mapped(g: Any, x: Value, rows: np.ndarray, columns: np.ndarray) -> Value:
    """Returns rows @ image @ columns^T for each image of ``x`` [N, C, H, W].

    An InnerProduct takes the last axis.
    """
    height, width = x.shape[2:]
    outputs_h, outputs_w = len(rows), len(columns)
    if width != outputs_w:
        x = product_along_last(g, x, g.const(columns))
    return x if height == outputs_h else mapped_along(g, x, 2, rows)
