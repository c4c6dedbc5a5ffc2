"""aten::conv1d, conv2d, conv3d: cross-correlation of [N, C, ...] with weights [O, C / groups, ...]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import Ints, TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import NHWC, SOURCE
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer, integers
from tmconvert.symbolics.results import kernel_attribute, window_extent
from tmconvert.symbolics.traits import Spatial, Weights
from tmconvert.symbolics.windows import gathered, widened

Array = np.ndarray


def _result(
    x: TensorType, weight: TensorType, bias: TensorType | None, stride: Ints, padding: Ints, dilation: Ints,
    groups: int,
) -> TensorType:  # fmt: skip
    channels, out_channels = x.shape[1], weight.shape[0]
    if weight.shape[1] * groups != channels or out_channels % groups:
        raise ValueError(f"weight {weight} does not fit {channels} channels in {groups} groups")
    if bias is not None and bias.shape != (out_channels,):
        raise ValueError(f"bias {bias} does not fit {out_channels} output channels")
    if min(*stride, *dilation) < 1 or min(padding) < 0:
        raise ValueError(
            f"stride {stride} and dilation {dilation} must be positive, the padding {padding} non-negative"
        )
    spatial = map(window_extent, x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return TensorType(x.dtype, (x.shape[0], out_channels, *spatial))


def _op(axes: int) -> Op:
    op = Op(
        f"aten::conv{axes}d",
        args=[
            Tensor("x", FLOATS, ranks=(2 + axes,)), Tensor("weight", FLOATS, ranks=(2 + axes,)),
            Tensor("bias", FLOATS, optional=True), integers("stride", [1] * axes, length=axes),
            integers("padding", [0] * axes, length=axes), integers("dilation", [1] * axes, length=axes),
            integer("groups", 1),
        ],
        result=_result,
        layout=NHWC if axes == 2 else SOURCE,
        traits=[Weights(spatial=axes), Spatial()],
    )  # fmt: skip

    @op.onnx(since=1)
    def conv_onnx1(g, x, weight, bias, stride, padding, dilation, groups):
        return g.op(
            "Conv",
            x,
            weight,
            bias,
            kernel_shape=kernel_attribute(weight),
            strides=stride,
            pads=padding + padding,
            dilations=dilation,
            group=groups,
        )

    op.reference(convolved)
    return op


def convolved(
    x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """Sums of products over windows, by one matrix product per group.

    Shapes: x [N, C, ...], weight [O, C / groups, ...] -> [N, O, ...].
    Source: torch.nn.functional.conv2d.
    """
    batch, axes = x.shape[0], x.ndim - 2
    windows = gathered(widened(x, padding, padding), weight.shape[2:], stride, dilation)
    outputs = windows.shape[2:-axes]
    kernel_first = (0, 1, *range(2 + axes, 2 + 2 * axes), *range(2, 2 + axes))
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)  # -1 says nothing of an empty batch
    columns = windows.transpose(kernel_first).reshape(batch, groups, rows.shape[2], math.prod(outputs))
    precise = np.promote_types(x.dtype, np.float32)  # NumPy multiplies matrices of float16 slowly
    product = np.matmul(rows.astype(precise, copy=False), columns.astype(precise, copy=False))
    result = product.reshape(batch, weight.shape[0], *outputs)
    if bias is not None:
        result += bias.reshape(-1, *[1] * axes)
    return result.astype(x.dtype, copy=False)


CONVOLUTIONS = {axes: _op(axes) for axes in (1, 2, 3)}
OPS = list(CONVOLUTIONS.values())
conv1d, conv2d, conv3d = OPS


@conv3d.caffe()
def conv3d_caffe(g, x, weight, bias, stride, padding, dilation, groups):
    if not weight.is_constant or (bias is not None and not bias.is_constant):
        g.refuse("a Caffe Convolution stores its weights in the model: they cannot be computed")
    return g.op(
        "Convolution",
        x,
        weight,
        bias,
        num_output=weight.shape[0],
        bias_term=bias is not None,
        kernel_size=list(weight.shape[2:]),
        stride=stride,
        pad=padding,
        dilation=dilation,
        group=groups,
    )


@conv1d.decompose
def conv1d_as_conv2d(g, x, weight, bias, stride, padding, dilation, groups):
    """Converts to 2-d with a height of 1."""
    (batch, channels, extent), (out_channels, depth, kernel) = g.type(x).shape, g.type(weight).shape
    result = g.call(
        "aten::conv2d",
        g.call("aten::reshape", x, [batch, channels, 1, extent]),
        g.call("aten::reshape", weight, [out_channels, depth, 1, kernel]),
        bias,
        [1, *stride],
        [0, *padding],
        [1, *dilation],
        groups,
    )
    return g.call("aten::reshape", result, [batch, out_channels, g.type(result).shape[3]])


@conv3d.decompose
def conv3d_planar(g, x, weight, bias, stride, padding, dilation, groups):
    """Sums 2-d convolutions of planes, one per tap along D; one element along H and W is one over D."""
    (batch, channels, depth, *plane), (outputs, width, taps, *kernel) = g.type(x).shape, g.type(weight).shape
    others = (stride[1:], padding[1:], dilation[1:])
    if kernel == [1, 1] and others[:2] == ([1, 1], [0, 0]):
        x = g.call("aten::reshape", x, [batch, channels, depth, math.prod(plane)])
        weight = g.call("aten::reshape", weight, [outputs, width, taps, 1])
        windows = [[sizes[0], other] for sizes, other in ((stride, 1), (padding, 0), (dilation, 1))]
        x = g.call("aten::conv2d", x, weight, bias, *windows, groups)
        return g.call("aten::reshape", x, [batch, outputs, g.type(x).shape[2], *plane])
    frames = window_extent(depth, taps, stride[0], padding[0], dilation[0])
    planes = idioms.convolutions.planes_of(g, x)
    if padding[0]:
        planes = g.call("aten::pad", planes, [padding[0] * batch] * 2 + [0] * 6)
    total = None
    for tap in range(taps):
        first = tap * dilation[0]
        end = first + (frames - 1) * stride[0] + 1
        if batch == 1 or stride[0] == 1:
            part = g.call("aten::slice", planes, 0, first * batch, end * batch, stride[0])
        elif is_symbolic((batch, frames)):
            part = g.call("aten::reshape", planes, [depth + 2 * padding[0], batch * channels, *plane])
            part = g.call("aten::slice", part, 0, first, end, stride[0])
            part = g.call("aten::reshape", part, [frames * batch, channels, *plane])
        else:
            numbers = np.arange(frames)[:, None] * stride[0] + first
            numbers = (numbers * batch + np.arange(batch)).reshape(-1)
            part = g.call("aten::index_select", planes, 0, g.constant(numbers))
        kernels = g.call("aten::select", weight, 2, tap)
        part = g.call("aten::conv2d", part, kernels, None if tap else bias, *others, groups)
        total = part if total is None else g.call("aten::add", total, part)
    return idioms.convolutions.volume_of(g, total, batch)


for _convolution in OPS:  # ONNX Runtime has no kernel of Conv in float64
    _convolution.native_where("onnx")(lambda x, **_: x.dtype != np.float64)


@conv2d.decompose
def conv2d_columns(g, x, weight, bias, stride, padding, dilation, groups):
    return idioms.convolutions.columns(g, x, weight, bias, stride, padding, dilation, groups)


@conv2d.tflite()
def conv2d_tflite(g, x, weight, bias, stride, padding, dilation, groups):
    return idioms.tflite_convolutions.conv2d_tflite(g, x, weight, bias, stride, padding, dilation, groups)


@conv2d.caffe()
def conv2d_caffe(g, x, weight, bias, stride, padding, dilation, groups):
    if not weight.is_constant or (bias is not None and not bias.is_constant):
        g.refuse("a Caffe Convolution stores its weights in the model: they cannot be computed")
    for axis in (2, 3):
        tap = _only_tap(x, weight, stride, padding, dilation, axis)
        if tap is not None:
            taps = weight.data.take([tap], axis)
            weight = g.const(taps, name=f"{weight.name}_taps")
            padding = [0 if i == axis - 2 else amount for i, amount in enumerate(padding)]
    out_channels, _, kernel_h, kernel_w = weight.shape
    return g.op(
        "Convolution",
        x,
        weight,
        bias,
        num_output=out_channels,
        bias_term=bias is not None,
        kernel_h=kernel_h,
        kernel_w=kernel_w,
        stride_h=stride[0],
        stride_w=stride[1],
        pad_h=padding[0],
        pad_w=padding[1],
        dilation=dilation,
        group=groups,
    )


def _only_tap(x: Any, weight: Any, stride: Ints, padding: Ints, dilation: Ints, axis: int) -> int | None:
    """Returns the only tap along ``axis`` that covers an element where both extents are one; else None.

    OpenCV 4.14 reads beyond an axis of one element in depthwise 3x3 convolutions with padding.
    """
    i = axis - 2
    reach = (weight.shape[axis] - 1) * dilation[i] + 1
    single = x.shape[axis] == 1 and (1 + 2 * padding[i] - reach) // stride[i] == 0
    met = padding[i] % dilation[i] == 0 and padding[i] // dilation[i] < weight.shape[axis]
    return padding[i] // dilation[i] if single and met and weight.shape[axis] > 1 else None
