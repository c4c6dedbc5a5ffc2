"""aten::conv2d, cross-correlation of [N, C, H, W] with weights [O, C / groups, kH, kW]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...ir.types import TensorType
from ..idioms import tflite
from ..layouts import NHWC
from ..op import FLOATS, Op, Tensor, integer, integers
from ..results import window_extent

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
    spatial = [
        window_extent(x.shape[2 + i], weight.shape[2 + i], stride[i], padding[i], dilation[i]) for i in (0, 1)
    ]
    return TensorType(x.dtype, (x.shape[0], out_channels, *spatial))


conv2d = Op(
    "aten::conv2d",
    args=[
        Tensor("x", FLOATS, ranks=(4,)),
        Tensor("weight", FLOATS, ranks=(4,)),
        Tensor("bias", FLOATS, optional=True),
        integers("stride", [1, 1], length=2),
        integers("padding", [0, 0], length=2),
        integers("dilation", [1, 1], length=2),
        integer("groups", 1),
    ],
    result=_result,
    layout=NHWC,
)


@conv2d.reference
def conv2d_ref(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Array:
    """Sums of products over windows, one matrix product a group.

    Shapes: x [N, C, H, W], weight [O, C / groups, kH, kW] -> [N, O, H', W'].
    Source: torch.nn.functional.conv2d.
    """
    (kernel_h, kernel_w), out_channels = weight.shape[2:], weight.shape[0]
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    reach = [(kernel_h - 1) * dilation[0] + 1, (kernel_w - 1) * dilation[1] + 1]
    windows = sliding_window_view(x, reach, axis=(2, 3))  # [N, C, H', W', reach_h, reach_w]
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    batch, channels, height, width = windows.shape[:4]
    per_group = channels // groups
    result = np.empty((batch, out_channels, height, width), x.dtype)
    for group in range(groups):
        part = windows[:, group * per_group : (group + 1) * per_group]
        columns = part.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, -1)
        rows = slice(group * out_channels // groups, (group + 1) * out_channels // groups)
        product = columns @ weight[rows].reshape(rows.stop - rows.start, -1).T
        result[:, rows] = product.reshape(batch, height, width, -1).transpose(0, 3, 1, 2)
    return result if bias is None else result + bias[:, None, None]


@conv2d.onnx(since=1)
def conv2d_onnx1(g, x, weight, bias, stride, padding, dilation, groups):
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
