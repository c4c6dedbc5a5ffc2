"""Convolutions."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import rank, static_ints
from tmconvert.frontends.tflite.adapters.values import PREFIX, activated, check_rank, permuted
from tmconvert.frontends.tflite.adapters.windows import Padding, padding_of
from tmconvert.frontends.tflite.layout import ChannelsFirst, channels_first
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)


@OPERATORS.add("CONV_2D")
def conv_2d(
    g, x, filters, bias=None,
    *, padding, stride_w, stride_h, dilation_w_factor=1, dilation_h_factor=1,
    fused_activation_function="NONE",
):  # fmt: skip
    check_rank(g, x, 4)
    check_rank(g, filters, 4)
    channels, own = g.type(x).shape[3], g.type(filters).shape[3]
    if not own or channels % own:
        raise Refusal(f"filters of {own} channels do not divide the {channels} channels of the input")
    weight = permuted(g, filters, [0, 3, 1, 2])
    strides, spread = [stride_h, stride_w], [dilation_h_factor, dilation_w_factor]
    made = convolved(g, channels_first(g, x), weight, bias, padding, strides, spread, channels // own)
    return activated(g, made, fused_activation_function)


@OPERATORS.add("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(
    g, x, filters, bias=None,
    *, padding, stride_w, stride_h, depth_multiplier=0, dilation_w_factor=1, dilation_h_factor=1,
    fused_activation_function="NONE",
):  # fmt: skip
    """The results' channels are those of the first input channel, of the second, ...: as with groups."""
    check_rank(g, x, 4)
    check_rank(g, filters, 4)
    weight = permuted(g, filters, [3, 0, 1, 2])
    strides, spread = [stride_h, stride_w], [dilation_h_factor, dilation_w_factor]
    groups = g.type(x).shape[3]
    made = convolved(g, channels_first(g, x), weight, bias, padding, strides, spread, groups)
    return activated(g, made, fused_activation_function)


@OPERATORS.add("CONV_3D")
def conv_3d(
    g, x, filters, bias=None,
    *, padding, stride_d, stride_w, stride_h, dilation_d_factor=1, dilation_w_factor=1, dilation_h_factor=1,
    fused_activation_function="NONE",
):  # fmt: skip
    check_rank(g, x, 5)
    weight = permuted(g, filters, [4, 3, 0, 1, 2])
    strides = [stride_d, stride_h, stride_w]
    spread = [dilation_d_factor, dilation_h_factor, dilation_w_factor]
    groups = g.type(x).shape[4] // g.type(weight).shape[1]
    made = convolved(g, channels_first(g, x), weight, bias, padding, strides, spread, groups)
    return activated(g, made, fused_activation_function)


def convolved(
    g: Emitter, x, weight, bias, scheme: str, strides: list[int], dilations: list[int], groups: int
) -> ChannelsFirst:
    """Convolves a tensor that has its channels first."""
    axes = rank(g, x) - 2
    given = padding_of(scheme, g.type(x).shape[2:], g.type(weight).shape[2:], strides, dilations)
    begin = given.begin
    if not given.is_even:
        x, begin = padded(g, x, given, 0.0), [0] * axes
    return ChannelsFirst(g.call(f"aten::conv{axes}d", x, weight, bias, strides, begin, dilations, groups))


def padded(g: Emitter, x: Any, given: Padding, value: float) -> Any:
    """Pads the spatial axes of an NCHW tensor; the result keeps the quantization parameters."""
    pairs = [end for pair in zip(given.begin, given.end, strict=True) for end in pair]
    if not any(pairs):
        return x
    made = g.call("aten::pad", x, [0, 0, 0, 0, *pairs], "constant", value)
    qparams = getattr(x, "qparams", None)
    return made if qparams is None else g.quantized(made, qparams)


@OPERATORS.add("TRANSPOSE_CONV")
def transpose_conv(
    g, output_shape, filters, x, bias=None, *, padding, stride_w, stride_h, fused_activation_function="NONE"
):
    check_rank(g, x, 4)
    made = _transposed(
        g, output_shape, permuted(g, filters, [3, 0, 1, 2]), x, bias, padding, [stride_h, stride_w], [1, 1]
    )
    return activated(g, made, fused_activation_function)


@OPERATORS.add("CONV_3D_TRANSPOSE")
def conv_3d_transpose(
    g, output_shape, filters, x, bias=None,
    *, padding, stride_d, stride_w, stride_h, dilation_d_factor=1, dilation_w_factor=1, dilation_h_factor=1,
    fused_activation_function="NONE",
):  # fmt: skip
    check_rank(g, x, 5)
    weight, strides = permuted(g, filters, [4, 3, 0, 1, 2]), [stride_d, stride_h, stride_w]
    spread = [dilation_d_factor, dilation_h_factor, dilation_w_factor]
    made = _transposed(g, output_shape, weight, x, bias, padding, strides, spread)
    return activated(g, made, fused_activation_function)


def _transposed(
    g: Emitter, output_shape, weight, x, bias, scheme: str, strides: list[int], dilations: list[int]
) -> ChannelsFirst:
    """A transposed convolution to a shape; ``weight`` has the channels of ``x`` first."""
    axes = len(strides)
    sizes = static_ints(g, output_shape, "the shape of the result")
    if len(sizes) != axes + 2:
        raise Refusal(f"the shape of the result has {len(sizes)} axes")
    kernel = g.type(weight).shape[2:]
    given = padding_of(scheme, sizes[1:-1], kernel, strides, dilations)
    source = channels_first(g, x)
    # what the last windows leave uncovered is in the result, too
    extra = [
        size - ((extent - 1) * step + (window - 1) * spread + 1 - 2 * begin)
        for size, extent, step, window, spread, begin in zip(
            sizes[1:-1], g.type(source).shape[2:], strides, kernel, dilations, given.begin, strict=True
        )
    ]
    more = [max(each, 0) if isinstance(each, int) else 0 for each in extra]
    op = f"aten::conv_transpose{axes}d"
    made = g.call(op, source, weight, bias, strides, given.begin, more, 1, dilations)
    for axis, size in enumerate(sizes[1:-1]):
        if g.type(made).shape[2 + axis] != size:
            made = g.call("aten::slice", made, 2 + axis, 0, size, 1)
    return ChannelsFirst(made)


@OPERATORS.add("custom.Convolution2DTransposeBias")
def mediapipe_transpose_conv(g, x, filters, bias, *, padding, stride_w, stride_h):
    """MediaPipe's operator, whose padding determines the size of the result."""
    check_rank(g, x, 4)
    check_rank(g, filters, 4)
    sizes = []
    for axis, stride in ((1, stride_h), (2, stride_w)):
        extent, window = g.type(x).shape[axis], g.type(filters).shape[axis]
        lost = max(window - (extent - 1) % stride - 1, 0) if padding == "SAME" else 0
        sizes.append(stride * (extent - 1) + window - lost)
    shape = [1, *sizes, g.type(filters).shape[0]]
    options: dict[str, Any] = {"padding": padding, "stride_w": stride_w, "stride_h": stride_h}
    return transpose_conv(g, shape, filters, x, bias, **options)
