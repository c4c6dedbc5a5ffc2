"""Pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.tflite.adapters.convolutions import padded
from tmconvert.frontends.tflite.adapters.values import PREFIX, activated, check_rank, number
from tmconvert.frontends.tflite.adapters.windows import padding_of
from tmconvert.frontends.tflite.layout import ChannelsFirst, channels_first
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)


class _Window:
    """The windows of a pooling, with the channels first.

    A window that begins in the input may end behind it (ceil_mode), which is what an odd padding of SAME does
    where windows are further apart than one element.
    """

    def __init__(self, g: Emitter, x, scheme: str, kernel: list[int], strides: list[int]) -> None:
        check_rank(g, x, 4)
        self.kernel, self.strides = kernel, strides
        self.x = channels_first(g, x)
        self.padding = padding_of(scheme, g.type(self.x).shape[2:], kernel, strides, [1, 1])
        self.reaches_beyond = not self.padding.is_even
        self.needs_padding = any(
            first != last and step == 1
            for first, last, step in zip(self.padding.begin, self.padding.end, strides, strict=True)
        )


@OPERATORS.add("MAX_POOL_2D")
def max_pool_2d(
    g, x, *, padding, stride_w, stride_h, filter_width, filter_height, fused_activation_function="NONE"
):
    window = _Window(g, x, padding, [filter_height, filter_width], [stride_h, stride_w])
    source, begin, ceil = window.x, window.padding.begin, window.reaches_beyond
    if window.needs_padding:
        lowest = float(np.finfo(g.type(source).dtype).min)
        source, begin, ceil = padded(g, source, window.padding, lowest), [0, 0], False
    made = g.call("aten::max_pool2d", source, window.kernel, window.strides, begin, [1, 1], ceil)
    return activated(g, ChannelsFirst(made), fused_activation_function)


@OPERATORS.add("AVERAGE_POOL_2D")
def average_pool_2d(
    g, x, *, padding, stride_w, stride_h, filter_width, filter_height, fused_activation_function="NONE"
):
    window = _Window(g, x, padding, [filter_height, filter_width], [stride_h, stride_w])
    return activated(g, ChannelsFirst(_mean(g, window)), fused_activation_function)


def _mean(g: Emitter, window: _Window) -> Any:
    """Means of the elements in each window, without the padding."""
    x, kernel, strides = window.x, window.kernel, window.strides
    if not window.needs_padding:
        begin = window.padding.begin
        return g.call("aten::avg_pool2d", x, kernel, strides, begin, window.reaches_beyond, False)
    whole = _whole(g, x, window)
    ones = g.call("aten::expand", number(g, x, 1), [1, 1, *g.type(x).shape[2:]])
    return g.call("aten::div", whole, _whole(g, ones, window))


def _whole(g: Emitter, x: Any, window: _Window) -> Any:
    """Means of the elements in each window, in which padding counts as zeros."""
    return g.call(
        "aten::avg_pool2d",
        padded(g, x, window.padding, 0.0),
        window.kernel,
        window.strides,
        [0, 0],
        False,
        False,
    )


@OPERATORS.add("L2_POOL_2D")
def l2_pool_2d(
    g, x, *, padding, stride_w, stride_h, filter_width, filter_height, fused_activation_function="NONE"
):
    """The root of the mean of the squares."""
    window = _Window(g, x, padding, [filter_height, filter_width], [stride_h, stride_w])
    window.x = g.call("aten::square", window.x)
    made = g.call("aten::sqrt", _mean(g, window))
    return activated(g, ChannelsFirst(made), fused_activation_function)
