"""Pooling over one or three axes, expressed by pooling over two."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.types import name_of

# what an axis that is not pooled has in each list of the windows
NEUTRAL = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


def is_one_element(kernel_size: list[int], stride: list[int], padding: list[int], **_: Any) -> bool:
    """Whether each window covers exactly one element, and each element exactly one window."""
    return all(size == 1 for size in (*kernel_size, *stride)) and not any(padding)


def planar(g: Any, op: str, x: Any, windows: dict[str, list[int]], first: Any, second: Any) -> Any:
    """Pools ``x`` [N, C, L] or [N, C, D, H, W] by ``op``, which pools over two axes.

    Three axes are pooled in two steps, H and W, then D; ``first`` and ``second`` are the attributes
    of the steps that do not belong to an axis.
    """
    batch, channels, *spatial = g.type(x).shape
    if len(spatial) == 1:
        return _flat(g, op, x, windows, (batch, channels, 1, spatial[0]), first)
    planes = {name: values[1:] for name, values in windows.items()}
    depth = {name: values[:1] for name, values in windows.items()}
    x = g.call("aten::reshape", x, [batch, channels * spatial[0], *spatial[1:]])
    x = g.call(op, x, **planes, **first)
    height, width = g.type(x).shape[2:]
    rows = {name: [*values, NEUTRAL[name]] for name, values in depth.items()}
    x = g.call("aten::reshape", x, [batch, channels, spatial[0], height * width])
    x = g.call(op, x, **rows, **second)
    return g.call("aten::reshape", x, [batch, channels, g.type(x).shape[2], height, width])


def _flat(g: Any, op: str, x: Any, windows: dict[str, list[int]], shape: Any, attributes: Any) -> Any:
    rows = {name: [NEUTRAL[name], *values] for name, values in windows.items()}
    result = g.call(op, g.call("aten::reshape", x, list(shape)), **rows, **attributes)
    return g.call("aten::reshape", result, [*shape[:2], g.type(result).shape[3]])


def counted(
    g: Any, x: Any, kernel_size: list[int], stride: list[int], padding: list[int], ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Any:  # fmt: skip
    """Divides the sums of the windows by the numbers of their elements along each axis."""
    from tmconvert.symbolics.idioms.indices import numbers

    area = math.prod(kernel_size) if divisor_override is None else divisor_override
    windows = (kernel_size, stride, padding, ceil_mode, True)
    extents, result = g.type(x).shape[2:], g.call("aten::avg_pool2d", x, *windows, area)
    for axis in (0, 1) if divisor_override is None else ():
        margin = padding[axis] if count_include_pad else 0
        starts = numbers(g, 0, g.type(result).shape[2 + axis])
        starts = g.call("aten::mul", starts, g.constant(np.int64(stride[axis])))
        starts = g.call("aten::sub", starts, g.constant(np.int64(padding[axis])))
        ends = g.call("aten::add", starts, g.constant(np.int64(kernel_size[axis])))
        ends = g.call("aten::minimum", ends, g.constant([extents[axis] + margin], np.int64))
        starts = g.call("aten::maximum", starts, g.constant(np.int64(-margin)))
        counts = g.call("aten::to", g.call("aten::sub", ends, starts), dtype=name_of(g.type(x).dtype))
        factor = g.call("aten::div", g.constant(kernel_size[axis], g.type(x).dtype), counts)
        shape = [1, 1, 1, 1]
        shape[2 + axis] = g.type(result).shape[2 + axis]
        result = g.call("aten::mul", result, g.call("aten::reshape", factor, shape))
    return result
