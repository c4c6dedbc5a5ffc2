"""torchvision::deform_conv2d: a convolution whose windows are sampled at offset positions."""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integers
from tmconvert.symbolics.results import window_extent

Array = np.ndarray
Ints = list[int]


def _result(
    x: TensorType, weight: TensorType, offset: TensorType, mask: TensorType | None, bias: TensorType | None,
    stride: Ints, padding: Ints, dilation: Ints,
) -> TensorType:  # fmt: skip
    if x.shape[1] % weight.shape[1]:
        raise ValueError(f"x {x} and weight {weight} do not fit")
    if min(*stride, *dilation) < 1 or min(padding) < 0:
        raise ValueError(f"stride {stride}, dilation {dilation} or padding {padding} is out of range")
    outputs = tuple(map(window_extent, x.shape[2:], weight.shape[2:], stride, padding, dilation))
    taps = math.prod(weight.shape[2:])
    for tensor, numbers in ((offset, 2), (mask, 1)):
        if tensor is None:
            continue
        if tensor.shape[1] % (taps * numbers) or tensor.shape[2:] != outputs:
            raise ValueError(f"an offset or mask {tensor} does not fit {taps} taps at {outputs}")
    if x.shape[1] % (offset.shape[1] // (2 * taps)):
        raise ValueError(f"offset {offset} does not fit {x.shape[1]} channels")
    if mask is not None and 2 * mask.shape[1] != offset.shape[1]:
        raise ValueError(f"mask {mask} does not fit offset {offset}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias {bias} does not fit {weight.shape[0]} output channels")
    return TensorType(x.dtype, (x.shape[0], weight.shape[0], *outputs))


deform_conv2d = Op(
    "torchvision::deform_conv2d",
    args=[
        Tensor("x", FLOATS, ranks=(4,)), Tensor("weight", FLOATS, ranks=(4,)),
        Tensor("offset", FLOATS, ranks=(4,)), Tensor("mask", FLOATS, optional=True, ranks=(4,)),
        Tensor("bias", FLOATS, optional=True), integers("stride", [1, 1], length=2),
        integers("padding", [0, 0], length=2), integers("dilation", [1, 1], length=2),
    ],
    result=_result,
)  # fmt: skip


@deform_conv2d.reference
def deform_conv2d_ref(
    x: Array, weight: Array, offset: Array, mask: Array | None, bias: Array | None, stride: Ints,
    padding: Ints, dilation: Ints,
) -> Array:  # fmt: skip
    """Bilinear samples of the zero-padded input, then products with the weights.

    Shapes: x [N, C, H, W], weight [O, C / groups, kH, kW], offset [N, 2 G kH kW, H', W'] (y before x),
    mask [N, G kH kW, H', W'] -> [N, O, H', W'].
    Source: torchvision.ops.deform_conv2d.
    """
    (batch, channels), (out_channels, depth, *kernel) = x.shape[:2], weight.shape
    taps, outputs = math.prod(kernel), offset.shape[2:]
    precise = np.promote_types(x.dtype, np.float32)
    moves = offset.reshape(batch, -1, taps, 2, *outputs).astype(precise)
    places = [
        np.arange(kernel[i]).reshape(-1, *[1] * (3 - i)) * dilation[i]
        + np.arange(outputs[i]).reshape([-1, 1][: 2 - i]) * stride[i]
        - padding[i]
        for i in (0, 1)
    ]
    indices = [np.broadcast_to(place, (*kernel, *outputs)).reshape(taps, *outputs) for place in places]
    rows, columns = (indices[i] + moves[:, :, :, i] for i in (0, 1))
    parts = x.reshape(batch, moves.shape[1], -1, *x.shape[2:]).astype(precise)
    samples = _sampled(parts, rows, columns)  # [N, G, C / G, taps, H', W']
    if mask is not None:
        samples = samples * mask.reshape(batch, -1, 1, taps, *outputs)
    groups = channels // depth
    columns = samples.reshape(batch, groups, depth * taps, math.prod(outputs))
    product = np.matmul(weight.reshape(groups, out_channels // groups, -1).astype(precise), columns)
    result = product.reshape(batch, out_channels, *outputs)
    return (result if bias is None else result + bias[:, None, None]).astype(x.dtype)


def _sampled(x: Array, rows: Array, columns: Array) -> Array:
    """Samples ``x`` [N, G, C, H, W] at fractional positions [N, G, ...], zero outside: [N, G, C, ...]."""
    height, width = x.shape[3:]
    flat = x.reshape(*x.shape[:3], height * width)
    top, left = np.floor(rows), np.floor(columns)
    result = np.zeros((), x.dtype)
    for row, row_share in ((top, top + 1 - rows), (top + 1, rows - top)):
        for column, share in ((left, left + 1 - columns), (left + 1, columns - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            index = np.where(inside, row * width + column, 0).astype(np.intp)
            values = np.take_along_axis(flat, index.reshape(*index.shape[:2], 1, -1), 3)
            values = values.reshape(*x.shape[:3], *index.shape[2:])
            result = result + values * np.where(inside, row_share * share, 0)[:, :, None]
    return result


@deform_conv2d.onnx(since=19)
def deform_conv2d_onnx19(g, x, weight, offset, mask, bias, stride, padding, dilation):
    if bias is None and mask is not None:
        bias = g.const(np.zeros(weight.shape[0], x.dtype))
    return g.op(
        "DeformConv",
        x,
        weight,
        offset,
        bias,
        mask,
        kernel_shape=list(weight.shape[2:]),
        strides=stride,
        pads=padding + padding,
        dilations=dilation,
        group=x.shape[1] // weight.shape[1],
        offset_group=offset.shape[1] // (2 * math.prod(weight.shape[2:])),
    )


@deform_conv2d.decompose
def deform_conv2d_sampled(g, x, weight, offset, mask, bias, stride, padding, dilation):
    """Samples by tm::remap, as channels of a 1x1 convolution."""
    (batch, channels, height, width), (out_channels, depth, *kernel) = g.type(x).shape, g.type(weight).shape
    dtype, taps, (rows, columns) = g.type(x).dtype, math.prod(kernel), g.type(offset).shape[2:]
    parts = g.type(offset).shape[1] // (2 * taps)
    steps = [
        np.arange(outputs)[:, None] * stride[i] + np.arange(kernel[i]) * dilation[i] - padding[i]
        for i, outputs in enumerate((rows, columns))
    ]
    down = np.broadcast_to(steps[0].T[:, None, :, None], (*kernel, rows, columns))
    across = np.broadcast_to(steps[1].T[None, :, None, :], (*kernel, rows, columns))
    indices = np.stack([down, across], 2).reshape(1, taps, 2, rows, columns).astype(dtype)
    moves = g.call("aten::reshape", offset, [batch * parts, taps, 2, rows, columns])
    places = g.call("aten::permute", g.call("aten::add", moves, g.constant(indices)), [0, 1, 3, 4, 2])
    places = g.call("aten::flip", places, [4])  # x before y
    places = g.call("aten::reshape", places, [batch * parts, taps * rows, columns, 2])
    images = g.call("aten::reshape", x, [batch * parts, channels // parts, height, width])
    samples = g.call("tm::remap", images, places, None, "constant", 0, "linear")
    if mask is not None:
        shares = g.call("aten::reshape", mask, [batch * parts, 1, taps * rows, columns])
        samples = g.call("aten::mul", samples, shares)
    samples = g.call("aten::reshape", samples, [batch, channels * taps, rows, columns])
    points = g.call("aten::reshape", weight, [out_channels, depth * taps, 1, 1])
    return g.call("aten::conv2d", samples, points, bias, 1, 0, 1, channels // depth)
