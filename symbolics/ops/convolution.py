"""aten::conv1d, conv2d, conv3d: cross-correlation of [N, C, ...] with weights [O, C / groups, ...]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import TensorType
from ..idioms import tflite
from ..layouts import NHWC, SOURCE
from ..op import FLOATS, Op, Tensor, integer, integers
from ..results import window_extent
from ..windows import gathered, widened

Array = np.ndarray


def _result(
    x: TensorType,
    weight: TensorType,
    bias: TensorType | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> TensorType:
    channels, out_channels = x.shape[1], weight.shape[0]
    if weight.shape[1] * groups != channels or out_channels % groups:
        raise ValueError(f"weight {weight} does not fit {channels} channels in {groups} groups")
    if bias is not None and bias.shape != (out_channels,):
        raise ValueError(f"bias {bias} does not fit {out_channels} output channels")
    if min(*stride, *dilation) < 1 or min(padding) < 0:
        raise ValueError(
            f"stride {stride} and dilation {dilation} must be positive, the padding {padding} at least zero"
        )
    spatial = map(window_extent, x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return TensorType(x.dtype, (x.shape[0], out_channels, *spatial))


def _op(axes: int) -> Op:
    op = Op(
        f"aten::conv{axes}d",
        args=[
            Tensor("x", FLOATS, ranks=(2 + axes,)),
            Tensor("weight", FLOATS, ranks=(2 + axes,)),
            Tensor("bias", FLOATS, optional=True),
            integers("stride", [1] * axes, length=axes),
            integers("padding", [0] * axes, length=axes),
            integers("dilation", [1] * axes, length=axes),
            integer("groups", 1),
        ],
        result=_result,
        layout=NHWC if axes == 2 else SOURCE,
    )

    @op.onnx(since=1)
    def conv_onnx1(g, x, weight, bias, stride, padding, dilation, groups):
        return g.op(
            "Conv",
            x,
            weight,
            bias,
            kernel_shape=list(weight.shape[2:]),
            strides=stride,
            pads=padding + padding,
            dilations=dilation,
            group=groups,
        )

    op.reference(convolved)
    return op


def convolved(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Array:
    """Sums of products over windows, a matrix product for each group.

    Shapes: x [N, C, ...], weight [O, C / groups, ...] -> [N, O, ...].
    Source: torch.nn.functional.conv2d.
    """
    batch, axes = x.shape[0], x.ndim - 2
    windows = gathered(widened(x, padding, padding), weight.shape[2:], stride, dilation)
    outputs = windows.shape[2:-axes]
    kernel_first = (0, 1, *range(2 + axes, 2 + 2 * axes), *range(2, 2 + axes))
    columns = windows.transpose(kernel_first).reshape(batch, groups, -1, math.prod(outputs))
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)
    precise = np.promote_types(x.dtype, np.float32)  # NumPy multiplies matrices of float16 slowly
    product = np.matmul(rows.astype(precise, copy=False), columns.astype(precise, copy=False))
    result = product.reshape(batch, weight.shape[0], *outputs)
    if bias is not None:
        result += bias.reshape(-1, *[1] * axes)
    return result.astype(x.dtype, copy=False)


CONVOLUTIONS = {axes: _op(axes) for axes in (1, 2, 3)}
OPS = list(CONVOLUTIONS.values())
conv1d, conv2d, conv3d = OPS
conv3d.unsupported("tflite", "not written yet for TFLite")
conv3d.unsupported("caffe", "Caffe's Convolution in OpenCV has two axes")


@conv1d.decompose
def conv1d_as_conv2d(g, x, weight, bias, stride, padding, dilation, groups):
    """With a height of 1."""
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


@conv2d.tflite()
def conv2d_tflite(g, x, weight, bias, stride, padding, dilation, groups):
    out_channels, _, *kernel = weight.shape
    scheme = tflite.padding_scheme(x.shape[1:3], kernel, stride, padding, dilation)
    if scheme is None:
        x, scheme = tflite.padded(g, x, padding, padding), "VALID"
    if bias is None:  # the kernels refuse to prepare without one
        bias = g.const(np.zeros(out_channels, x.dtype), name=f"{weight.name}_zero_bias")
    options = {
        "padding": scheme,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
    }
    if groups > 1 and groups == x.shape[3]:
        weight = tflite.transposed(g, weight, (1, 2, 3, 0))
        multiplier = out_channels // groups
        return g.op("DEPTHWISE_CONV_2D", x, weight, bias, depth_multiplier=multiplier, **options)
    return g.op("CONV_2D", x, tflite.transposed(g, weight, (0, 2, 3, 1)), bias, **options)


@conv2d.caffe()
def conv2d_caffe(g, x, weight, bias, stride, padding, dilation, groups):
    if not weight.is_constant or (bias is not None and not bias.is_constant):
        g.refuse("a Caffe Convolution keeps its weights in the model: they cannot be computed")
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


def _only_tap(
    x: Any, weight: Any, stride: list[int], padding: list[int], dilation: list[int], axis: int
) -> int | None:
    """The one tap along ``axis`` that meets an element where input and output have one; else None.

    OpenCV 4.14 reads beyond an axis of one element in depthwise 3x3 convolutions with padding.
    """
    i = axis - 2
    reach = (weight.shape[axis] - 1) * dilation[i] + 1
    single = x.shape[axis] == 1 and (1 + 2 * padding[i] - reach) // stride[i] == 0
    met = padding[i] % dilation[i] == 0 and padding[i] // dilation[i] < weight.shape[axis]
    return padding[i] // dilation[i] if single and met and weight.shape[axis] > 1 else None
