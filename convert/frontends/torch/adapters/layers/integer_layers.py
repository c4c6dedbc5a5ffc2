"""Convolution and average pooling of integers, which no target has, as sums of products of slices."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from tmconvert.frontends.torch.adapters.elementwise import arithmetic
from tmconvert.frontends.torch.adapters.values import reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.types import Ints
from tmconvert.symbolics.results import pooled, window_extent
from tmconvert.symbolics.windows import Windows


def _slices(g: Emitter, x, kernel, outputs, stride: Ints, dilation: Ints) -> list[Any]:
    """Slices of ``x`` [N, C, ...] for each kernel position: [N, C, ``outputs``] each."""
    found = []
    for place in itertools.product(*map(range, kernel)):
        part = x
        for i, (at, count) in enumerate(zip(place, outputs, strict=True)):
            start = at * dilation[i]
            part = g.call("aten::slice", part, 2 + i, start, start + (count - 1) * stride[i] + 1, stride[i])
        found.append(part)
    return found


def _sum(g: Emitter, terms: list[Any]) -> Any:
    return functools.reduce(lambda x, y: g.call("aten::add", x, y), terms)


def _around(amounts: Any) -> list[Any]:
    """Returns the padding argument of aten::pad from pairs of amounts for all axes but the first two."""
    return [0, 0, 0, 0, *itertools.chain.from_iterable(amounts)]


def convolved(g: Emitter, x, weight, bias, stride: Ints, padding, dilation: Ints, groups: int) -> Any:
    """Integer convolution; ``padding`` is (before, after) of each axis, others are as of aten::conv2d."""
    kernel = g.type(weight).shape[2:]
    x = g.call("aten::pad", x, _around(padding))
    batch, channels, *extents = g.type(x).shape
    outputs = [
        window_extent(*row[:3], 0, row[3]) for row in zip(extents, kernel, stride, dilation, strict=True)
    ]
    features, depth = g.type(weight).shape[:2]
    columns = reshaped(g, weight, [groups, features // groups, depth, -1])
    products = []
    for number, part in enumerate(_slices(g, x, kernel, outputs, stride, dilation)):
        rows = reshaped(g, part, [batch, groups, channels // groups, -1])
        products.append(g.call("aten::matmul", g.call("aten::select", columns, 3, number), rows))
    result = reshaped(g, _sum(g, products), [batch, features, *outputs])
    if bias is None:
        return result
    return g.call("aten::add", result, reshaped(g, bias, [features, *[1] * len(outputs)]))


def spread(
    g: Emitter, x, weight, bias, stride: Ints, padding: Ints, output_padding: Ints, groups: int,
    dilation: Ints,
) -> Any:  # fmt: skip
    """Transposed convolution: ``stride - 1`` zeros between elements, convolved with rotated kernels."""
    channels, depth, *kernel = g.type(weight).shape
    rotated = reshaped(g, weight, [groups, channels // groups, depth, *kernel])
    rotated = g.call("aten::permute", rotated, [0, 2, 1, *range(3, 3 + len(kernel))])
    rotated = reshaped(g, rotated, [groups * depth, channels // groups, *kernel])
    rotated = g.call("aten::flip", rotated, list(range(2, 2 + len(kernel))))
    for axis, step in enumerate(stride, 2):
        x = _with_zeros_between(g, x, axis, step)
    rows = zip(dilation, kernel, padding, output_padding, strict=True)
    ends = [(step * (size - 1) - cut, step * (size - 1) - cut + extra) for step, size, cut, extra in rows]
    return convolved(g, x, rotated, bias, [1] * len(kernel), ends, dilation, groups)


def _with_zeros_between(g: Emitter, x, axis: int, step: int) -> Any:
    if step == 1:
        return x
    shape = list(g.type(x).shape)
    apart = reshaped(g, x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
    pad = [0] * (2 * len(shape) + 2)
    pad[2 * axis + 3] = step - 1
    long = reshaped(
        g, g.call("aten::pad", apart, pad), [*shape[:axis], shape[axis] * step, *shape[axis + 1 :]]
    )
    return g.call("aten::slice", long, axis, 0, (shape[axis] - 1) * step + 1, 1)


def averaged(
    g: Emitter, x, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Any:  # fmt: skip
    """Average pooling like aten::avg_pool2d; quotients are rounded towards zero."""
    outputs = pooled(g.type(x), kernel, stride, padding, [1] * len(kernel), ceil_mode).shape[2:]
    windows = Windows(g.type(x).shape[2:], outputs, kernel, stride, padding)
    ends = [(before, max(after, 0)) for before, after in zip(padding, windows.after, strict=True)]
    x = g.call("aten::pad", x, _around(ends))
    total = _sum(g, _slices(g, x, kernel, outputs, stride, [1] * len(kernel)))
    divisors = np.asarray(windows.wanted(count_include_pad, divisor_override))
    return arithmetic.div(g, total, g.constant(divisors.astype(g.type(x).dtype)), rounding_mode="trunc")
