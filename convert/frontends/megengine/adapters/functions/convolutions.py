"""megengine.functional.nn: convolutions of all kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.values import cast, per_axis, promoted, rank, reshaped, static_int
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.nn.")


def cross_correlation(conv_mode) -> None:
    if str(conv_mode).lower() != "cross_correlation":
        raise Refusal(f"conv_mode {conv_mode!r} is not supported")


def _without_groups_axis(g: Emitter, weight, axes: int, groups: int) -> Any:
    """Reshapes [groups, first / groups, ...] to [first, ...]."""
    shape = g.type(weight).shape
    if len(shape) == axes + 3:
        return reshaped(g, weight, [shape[0] * shape[1], *shape[2:]])
    if groups != 1:
        raise Refusal(f"a grouped weight has {_COUNTS[axes + 3]} axes, not {len(shape)}")
    return weight


_COUNTS = {4: "four", 5: "five", 6: "six"}


def with_bias(g: Emitter, inp, channels: int, bias, call: Callable[[Any], Any]) -> Any:
    """Emits ``call`` with the bias if it is per channel; else the bias is added to the result."""
    if bias is None:
        return call(None)
    type_ = g.type(bias)
    if type_.dtype == g.type(inp).dtype and type_.shape == (1, channels, *[1] * (rank(g, inp) - 2)):
        return call(bias)
    return modes.applied(g, "ADD", call(None), bias)


def convolved(g, inp, weight, bias, stride, padding, dilation, groups):
    """A convolution over the spatial axes of ``inp``; ``bias`` is per channel."""
    axes, groups = rank(g, inp) - 2, static_int(g, groups, "a number of groups")
    bias = None if bias is None else reshaped(g, bias, [-1])
    weight = _without_groups_axis(g, weight, axes, groups)
    windows = (per_axis(g, value, axes) for value in (stride, padding, dilation))
    return g.call(f"aten::conv{axes}d", inp, weight, bias, *windows, groups)


def _channels(g: Emitter, weight, axes: int) -> int:
    """Output channels of a weight, with an axis for the groups or without."""
    return math.prod(g.type(weight).shape[: rank(g, weight) - axes - 1])


def _add_convolution(name: str, axes: int) -> None:
    @FUNCTIONS.add(name)
    def adapter(
        g, inp, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, conv_mode="cross_correlation",
        compute_mode="default",
    ):  # fmt: skip
        """Weights (O, I, ...), or (groups, O / groups, I / groups, ...); bias (1, O, 1, ...)."""
        cross_correlation(conv_mode)
        inp, weight = promoted(g, inp, weight)
        if rank(g, inp) != axes + 2:
            raise Refusal(f"{name} takes {axes + 2} axes, not {rank(g, inp)}")
        return with_bias(
            g,
            inp,
            _channels(g, weight, axes),
            bias,
            lambda vector: convolved(g, inp, weight, vector, stride, padding, dilation, groups),
        )


for _axes in (1, 2, 3):
    _add_convolution(f"conv{_axes}d", _axes)


def transposed(g, inp, weight, bias, stride, padding, output_padding, dilation, groups):
    """A transposed convolution; ``bias`` is per channel of the result.

    Weights (I, O, ...), or (groups, I / groups, O / groups, ...).
    """
    axes, groups = rank(g, inp) - 2, static_int(g, groups, "a number of groups")
    weight = _without_groups_axis(g, weight, axes, groups)
    bias = None if bias is None else reshaped(g, bias, [-1])
    after = per_axis(g, output_padding, axes)
    if axes == 2 and not after[0]:  # MegEngine looks at the height alone to see whether there is any
        after = [0, 0]
    steps, around, spread = (per_axis(g, value, axes) for value in (stride, padding, dilation))
    name = f"aten::conv_transpose{axes}d"
    return g.call(name, inp, weight, bias, steps, around, after, groups, spread)


def _add_transposed(name: str, axes: int) -> None:
    @FUNCTIONS.add(name)
    def adapter(
        g, inp, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
        conv_mode="cross_correlation", compute_mode="default",
    ):  # fmt: skip
        cross_correlation(conv_mode)
        inp, weight = promoted(g, inp, weight)
        if rank(g, inp) != axes + 2:
            raise Refusal(f"{name} takes {axes + 2} axes, not {rank(g, inp)}")
        channels = g.type(weight).shape[-axes - 1] * static_int(g, groups, "a number of groups")
        windows = (stride, padding, output_padding, dilation, groups)
        return with_bias(g, inp, channels, bias, lambda value: transposed(g, inp, weight, value, *windows))


_add_transposed("conv_transpose2d", 2)
_add_transposed("conv_transpose3d", 3)


@FUNCTIONS.add("deformable_conv2d")
def deformable_conv2d(
    g, inp, weight, offset, mask, bias=None, stride=1, padding=0, dilation=1, groups=1,
    conv_mode="cross_correlation", compute_mode="default",
):  # fmt: skip
    """Offsets (N, 2 G kH kW, H, W), y before x; masks (N, G kH kW, H, W)."""
    cross_correlation(conv_mode)
    weight = _without_groups_axis(g, weight, 2, groups)
    dtype = g.type(inp).dtype
    moves = [cast(g, value, dtype) for value in (offset, mask)]
    windows = [per_axis(g, value, 2) for value in (stride, padding, dilation)]

    def call(value):
        vector = None if value is None else reshaped(g, value, [-1])
        return g.call("torchvision::deform_conv2d", inp, weight, *moves, vector, *windows)

    return with_bias(g, inp, g.type(weight).shape[0], bias, call)


@FUNCTIONS.add("local_conv2d")
def local_conv2d(g, inp, weight, bias=None, stride=1, padding=0, dilation=1, conv_mode="cross_correlation"):
    """Convolution with separate weights per position: (groups, H', W', I / groups, kH, kW, O / groups).

    The windows become channels of one element each, so that each position is a group of a convolution.
    """
    cross_correlation(conv_mode)
    groups, height, width, depth, kernel_h, kernel_w, out_channels = g.type(weight).shape
    batch, taps, places = g.type(inp).shape[0], depth * kernel_h * kernel_w, height * width
    columns = columns_of(g, inp, [kernel_h, kernel_w], stride, padding, dilation)
    columns = reshaped(g, columns, [batch, groups, taps, places])
    columns = g.call("aten::permute", columns, [0, 1, 3, 2])
    weight = g.call("aten::permute", weight, [0, 1, 2, 6, 3, 4, 5])
    result = g.call(
        "aten::conv1d",
        reshaped(g, columns, [batch, groups * places * taps, 1]),
        reshaped(g, weight, [groups * places * out_channels, taps, 1]),
        groups=groups * places,
    )
    result = reshaped(g, result, [batch, groups, places, out_channels])
    result = g.call("aten::permute", result, [0, 1, 3, 2])
    result = reshaped(g, result, [batch, groups * out_channels, height, width])
    return result if bias is None else modes.applied(g, "ADD", result, bias)


def columns_of(g: Emitter, inp, kernel: list[int], stride, padding, dilation) -> Any:
    """Returns the windows of ``inp`` as [N, C kH kW, positions]."""
    spread, around, steps = (per_axis(g, value, 2) for value in (dilation, padding, stride))
    return g.call("aten::im2col", inp, kernel, spread, around, steps)


@FUNCTIONS.add("region_restricted_conv")
def region_restricted_conv(
    g, inp, weight, rin, rout, bias=None, stride=1, padding=0, dilation=1, groups=1,
    conv_mode="cross_correlation", compute_mode="default",
):  # fmt: skip
    """A convolution of the elements whose region (N, H, W) equals that of the result (N, H', W')."""
    cross_correlation(conv_mode)
    weight = _without_groups_axis(g, weight, 2, groups)
    out_channels, depth, *kernel = g.type(weight).shape
    batch, channels, height, width = g.type(inp).shape
    taps, outputs = math.prod(kernel), g.type(rout).shape[1:]
    regions = reshaped(g, rin, [batch, 1, height, width])
    columns, regions = (columns_of(g, value, kernel, stride, padding, dilation) for value in (inp, regions))
    wanted = g.call("aten::eq", regions, reshaped(g, rout, [batch, 1, math.prod(outputs)]))
    mask = cast(g, reshaped(g, wanted, [batch, 1, taps, -1]), g.type(inp).dtype)
    columns = reshaped(g, columns, [batch, channels, taps, math.prod(outputs)])
    columns = reshaped(g, g.call("aten::mul", columns, mask), [batch, channels * taps, -1])
    weight = reshaped(g, weight, [out_channels, depth * taps, 1])
    result = g.call("aten::conv1d", columns, weight, groups=int(groups))
    result = reshaped(g, result, [batch, out_channels, *outputs])
    return result if bias is None else modes.applied(g, "ADD", result, bias)
