"""Convolutions in other ops: products of windows, and zeros between the elements of transposed ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import Ints
from tmconvert.symbolics.results import window_extent


def columns(
    g: Any, x: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    """Multiplies the windows as columns by the weights of each group."""
    (outputs, *taps), shape = g.type(weight).shape, g.type(x).shape
    sizes = map(window_extent, shape[2:], taps[1:], stride, padding, dilation)
    columns = g.call("aten::im2col", x, taps[1:], dilation, padding, stride)
    rows = math.prod(taps)
    columns = g.call("aten::reshape", columns, [shape[0], groups, rows, g.type(columns).shape[2]])
    weight = g.call("aten::reshape", weight, [1, groups, outputs // groups, rows])
    result = g.call("aten::reshape", g.call("aten::matmul", weight, columns), [shape[0], outputs, *sizes])
    if bias is None:
        return result
    return g.call("aten::add", result, g.call("aten::reshape", bias, [1, outputs, 1, 1]))


def stuffed(
    g: Any, x: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, output_padding: Ints, groups: int,
    dilation: Ints,
) -> Any:  # fmt: skip
    """Convolves the input, with zeros between its elements, with the kernel in reverse order."""
    (batch, channels, *extents), (_, outputs, *taps) = g.type(x).shape, g.type(weight).shape
    height, width = (extent * step for extent, step in zip(extents, stride, strict=True))
    x = g.call("aten::reshape", x, [batch, channels, extents[0], 1, extents[1], 1])
    x = g.call("aten::pad", x, [*[0] * 7, stride[0] - 1, *[0] * 3, stride[1] - 1])
    x = g.call("aten::reshape", x, [batch, channels, height, width])
    reach = [(size - 1) * step for size, step in zip(taps, dilation, strict=True)]
    ends = [
        (reach[i] - padding[i], reach[i] - padding[i] + output_padding[i] + 1 - stride[i]) for i in (0, 1)
    ]
    x = g.call("aten::pad", x, [0, 0, 0, 0, *ends[0], *ends[1]])
    weight = g.call("aten::reshape", weight, [groups, channels // groups, outputs, *taps])
    weight = g.call("aten::flip", g.call("aten::permute", weight, [0, 2, 1, 3, 4]), [3, 4])
    weight = g.call("aten::reshape", weight, [groups * outputs, channels // groups, *taps])
    return g.call("aten::conv2d", x, weight, bias, [1, 1], [0, 0], dilation, groups)


def spread_frames(
    g: Any, planes: Any, depth: Any, stride: int, first: int, full: Any, ends: tuple[Any, Any]
) -> Any:
    """Spreads [D N, C, H, W] over ``full`` frames: from ``first`` on one each ``stride``, zeros between them;
    returns the frames from the first of ``ends`` to the other.
    """
    count, *rest = g.type(planes).shape
    size = count // depth * math.prod(rest)
    rows = g.call("aten::reshape", planes, [depth, 1, size])
    rows = g.call("aten::pad", rows, [0, 0, 0, stride - 1, 0, 0])
    rows = g.call("aten::reshape", rows, [depth * stride, size])
    rows = g.call("aten::pad", rows, [first, max(full - first - depth * stride, 0), 0, 0])
    rows = g.call("aten::slice", rows, 0, *ends, 1)
    return g.call("aten::reshape", rows, [(ends[1] - ends[0]) * (count // depth), *rest])


def planar_transposed(
    g: Any, x: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, output_padding: Ints, groups: int,
    dilation: Ints, full: Any,
) -> Any:  # fmt: skip
    """Sums 2-d transposed convolutions of all planes, one per tap along D, which gives ``full`` frames."""
    (batch, _, depth, *_), taps = g.type(x).shape, g.type(weight).shape[2]
    planes, total = planes_of(g, x), None
    others = [sizes[1:] for sizes in (stride, padding, output_padding)]
    for tap in range(taps):
        kernels = g.call("aten::select", weight, 2, tap)
        part = g.call("aten::conv_transpose2d", planes, kernels, None, *others, groups, dilation[1:])
        first, ends = tap * dilation[0], (padding[0], full - padding[0])
        if is_symbolic((batch, depth)):
            part = spread_frames(g, part, depth, stride[0], first, full, ends)
        else:
            part = g.call("aten::pad", part, [0, batch, *[0] * 6])  # the plane of zeros behind the last
            source, rest = np.divmod(np.arange(*ends) - first, stride[0])
            source[(rest != 0) | (source < 0) | (source >= depth)] = depth
            numbers = (source[:, None] * batch + np.arange(batch)).reshape(-1)
            part = g.call("aten::index_select", part, 0, g.constant(numbers))
        total = part if total is None else g.call("aten::add", total, part)
    if bias is not None:
        total = g.call("aten::add", total, g.call("aten::reshape", bias, [1, g.type(bias).size, 1, 1]))
    return volume_of(g, total, batch)


def planes_of(g: Any, x: Any) -> Any:
    """Reshapes [N, C, D, H, W] to [D N, C, H, W]."""
    batch, channels, depth, *plane = g.type(x).shape
    planes = g.call("aten::permute", x, [2, 0, 1, 3, 4])
    return g.call("aten::reshape", planes, [depth * batch, channels, *plane])


def volume_of(g: Any, planes: Any, batch: int) -> Any:
    """Reshapes [D N, C, H, W] to [N, C, D, H, W]."""
    count, *rest = g.type(planes).shape
    volume = g.call("aten::reshape", planes, [count // batch, batch, *rest])
    return g.call("aten::permute", volume, [1, 2, 0, 3, 4])
