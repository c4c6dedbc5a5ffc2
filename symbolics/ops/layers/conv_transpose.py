"""aten::conv_transpose1d, 2d, 3d; weights [C, O / groups, ...]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.tflite_convolutions import stuffed_tflite
from tmconvert.symbolics.layouts import NHWC, SOURCE
from tmconvert.symbolics.op import FLOATS, Op, Tensor, integer, integers
from tmconvert.symbolics.results import kernel_attribute
from tmconvert.symbolics.traits import Spatial, Weights
from tmconvert.symbolics.windows import last_axes, scattered

Array = np.ndarray


def _result(
    x: TensorType, weight: TensorType, bias: TensorType | None, stride: list[int], padding: list[int],
    output_padding: list[int], groups: int, dilation: list[int],
) -> TensorType:  # fmt: skip
    if weight.shape[0] != x.shape[1] or groups < 1 or x.shape[1] % groups:
        raise ValueError(f"weight {weight} does not fit {x.shape[1]} channels in {groups} groups")
    out_channels = weight.shape[1] * groups
    if bias is not None and bias.shape != (out_channels,):
        raise ValueError(f"bias {bias} does not fit {out_channels} output channels")
    if min(*stride, *dilation) < 1 or min(*padding, *output_padding) < 0:
        raise ValueError(f"stride {stride}, dilation {dilation} or padding {padding} is out of range")
    for amount, *steps in zip(output_padding, stride, dilation, strict=True):
        if amount >= max(steps):
            raise ValueError(f"output_padding {output_padding} must be below the stride or the dilation")
    full = _extents(x.shape, weight.shape, stride, dilation, output_padding)
    spatial = [extent - 2 * amount for extent, amount in zip(full, padding, strict=True)]
    if any(extent < 1 for extent in spatial):
        raise ValueError(f"the padding {padding} leaves no element of {full}")
    return TensorType(x.dtype, (x.shape[0], out_channels, *spatial))


def _extents(x: Any, weight: Any, stride: list[int], dilation: list[int], after: list[int]) -> list[int]:
    """Output extents with ``after`` additional elements: (in - 1) stride + dilation (kernel - 1) + 1."""
    axes = zip(x[2:], weight[2:], stride, dilation, after, strict=True)
    return [
        (extent - 1) * step + spread * (kernel - 1) + 1 + extra
        for extent, kernel, step, spread, extra in axes
    ]


def _op(axes: int) -> Op:
    op = Op(
        f"aten::conv_transpose{axes}d",
        args=[
            Tensor("x", FLOATS, ranks=(2 + axes,)), Tensor("weight", FLOATS, ranks=(2 + axes,)),
            Tensor("bias", FLOATS, optional=True), integers("stride", [1] * axes, length=axes),
            integers("padding", [0] * axes, length=axes), integers("output_padding", [0] * axes, length=axes),
            integer("groups", 1), integers("dilation", [1] * axes, length=axes),
        ],
        result=_result,
        layout=NHWC if axes == 2 else SOURCE,
        traits=[Weights(spatial=axes, is_transposed=True), Spatial()],
    )  # fmt: skip

    @op.onnx(since=1)
    def conv_transpose_onnx1(g, x, weight, bias, stride, padding, output_padding, groups, dilation):
        ends, after = list(padding), list(output_padding)
        for i, amount in enumerate(output_padding):
            if amount >= stride[i]:  # less cut off is the same; ONNX Runtime takes no output_padding so large
                if amount > padding[i]:
                    g.refuse(
                        f"output_padding {amount} exceeds stride and padding, which ONNX Runtime does "
                        "not support"
                    )
                ends[i], after[i] = padding[i] - amount, 0
        return g.op(
            "ConvTranspose",
            x,
            weight,
            bias,
            kernel_shape=kernel_attribute(weight),
            strides=stride,
            pads=padding + ends,
            dilations=dilation,
            output_padding=after if any(after) else None,
            group=groups,
        )

    op.reference(spread)
    return op


def spread(
    x: Array, weight: Array, bias: Array | None, stride: list[int], padding: list[int],
    output_padding: list[int], groups: int, dilation: list[int],
) -> Array:  # fmt: skip
    """Computes all window contents by one matrix product, then sums over kernel positions.

    Shapes: x [N, C, ...], weight [C, O / groups, ...] -> [N, O, ...].
    Source: torch.nn.functional.conv_transpose2d.
    """
    batch, extents, kernel = x.shape[0], x.shape[2:], weight.shape[2:]
    precise = np.promote_types(x.dtype, np.float32)
    channels = weight.shape[0] // groups  # by its number: of an empty batch -1 could be any
    columns = x.reshape(batch, groups, channels, math.prod(extents)).astype(precise, copy=False)
    rows = weight.reshape(groups, channels, -1).transpose(0, 2, 1)
    windows = np.matmul(rows.astype(precise, copy=False), columns)
    windows = windows.reshape(batch, groups * weight.shape[1], *kernel, *extents)
    kernel_last = (0, 1, *range(2 + len(kernel), windows.ndim), *range(2, 2 + len(kernel)))
    full = _extents(x.shape, weight.shape, stride, dilation, output_padding)
    result = scattered(windows.transpose(kernel_last), full, stride, dilation)
    inner = [slice(amount, extent - amount) for amount, extent in zip(padding, full, strict=True)]
    result = last_axes(result, inner)
    if bias is not None:
        result = result + bias.reshape(-1, *[1] * len(kernel))
    return result.astype(x.dtype, copy=False)


CONV_TRANSPOSES = {axes: _op(axes) for axes in (1, 2, 3)}
OPS = list(CONV_TRANSPOSES.values())
conv_transpose1d, conv_transpose2d, conv_transpose3d = OPS


@conv_transpose1d.decompose
def conv_transpose1d_as_2d(g, x, weight, bias, stride, padding, output_padding, groups, dilation):
    """Converts to 2-d with a height of 1."""
    (batch, channels, extent), (_, out_channels, kernel) = g.type(x).shape, g.type(weight).shape
    result = g.call(
        "aten::conv_transpose2d",
        g.call("aten::reshape", x, [batch, channels, 1, extent]),
        g.call("aten::reshape", weight, [channels, out_channels, 1, kernel]),
        bias,
        [1, *stride],
        [0, *padding],
        [0, *output_padding],
        groups,
        [1, *dilation],
    )
    return g.call("aten::reshape", result, [batch, out_channels * groups, g.type(result).shape[3]])


@conv_transpose3d.decompose
def conv_transpose3d_planar(g, x, weight, bias, stride, padding, output_padding, groups, dilation):
    full = _extents(g.type(x).shape, g.type(weight).shape, stride, dilation, output_padding)[0]
    windows = (stride, padding, output_padding, groups, dilation)
    return idioms.convolutions.planar_transposed(g, x, weight, bias, *windows, full)


for _convolution in OPS:  # ONNX Runtime has no kernel of ConvTranspose in float64
    _convolution.native_where("onnx")(lambda x, **_: x.dtype != np.float64)


@conv_transpose2d.decompose
def conv_transpose2d_stuffed(g, x, weight, bias, stride, padding, output_padding, groups, dilation):
    windows = (stride, padding, output_padding, groups, dilation)
    return idioms.convolutions.stuffed(g, x, weight, bias, *windows)


@conv_transpose2d.tflite()
def conv_transpose2d_tflite(g, x, weight, bias, stride, padding, output_padding, groups, dilation):
    if groups > 1 or max(dilation) > 1:
        return stuffed_tflite(g, x, weight, bias, stride, padding, groups, dilation)
    if x.dtype != np.float32:
        g.refuse(f"TFLite's TRANSPOSE_CONV does not support {x.dtype}", "convert the model to float32")
    kernel, result = idioms.tflite.transposed(g, weight, (1, 2, 3, 0)), g.result_types[0].shape
    rows, columns = (result[1 + i] + 2 * padding[i] for i in (0, 1))
    full = (result[0], rows, columns, result[3])
    options = {"padding": "VALID", "stride_h": stride[0], "stride_w": stride[1]}
    takes_bias = g.has("TRANSPOSE_CONV", 3)
    operands = [g.ints(full), kernel, x, *([bias] if bias is not None and takes_bias else [])]
    x = g.op("TRANSPOSE_CONV", *operands, **options, shape=full, dtype=x.dtype)
    if any(padding):
        x = g.op("SLICE", x, g.ints([0, *padding, 0]), g.ints(result), shape=result)
    return x if bias is None or takes_bias else g.op("ADD", x, bias)


def _takes_dilation(g: Any, dilation: list[int]) -> bool:
    """Whether the dialect's Deconvolution supports this dilation; some support none, or equal ones only."""
    difference = max(dilation) - min(dilation)
    return g.allows("Deconvolution", "difference of dilations", difference) and all(
        g.allows("Deconvolution", "dilation", step) for step in dilation
    )


def _with_holes(weight: Array, dilation: list[int]) -> Array:
    """Returns the kernel without dilation: with zeros between the elements of ``weight`` [.., .., H, W]."""
    extents = [(size - 1) * step + 1 for size, step in zip(weight.shape[2:], dilation, strict=True)]
    kernel = np.zeros((*weight.shape[:2], *extents), weight.dtype)
    kernel[:, :, :: dilation[0], :: dilation[1]] = weight
    return kernel


@conv_transpose2d.caffe()
def conv_transpose2d_caffe(g, x, weight, bias, stride, padding, output_padding, groups, dilation):
    if not weight.is_constant or (bias is not None and not bias.is_constant):
        g.refuse("a Caffe Deconvolution stores its weights in the model: they cannot be computed")
    if not _takes_dilation(g, dilation):
        weight, dilation = g.const(_with_holes(weight.data, dilation)), [1, 1]
    if any(after > cut for after, cut in zip(output_padding, padding, strict=True)):
        g.refuse("a Caffe Deconvolution does not support output_padding greater than the padding")
    result = g.result_types[0].shape
    cut = [0, 0] if any(output_padding) else padding
    extents = _extents(x.shape, weight.shape, stride, dilation, [0, 0])
    full = (*result[:2], *(extent - 2 * amount for extent, amount in zip(extents, cut, strict=True)))
    x = g.op(
        "Deconvolution",
        x,
        weight,
        bias,
        num_output=result[1],
        bias_term=bias is not None,
        kernel_h=weight.shape[2],
        kernel_w=weight.shape[3],
        stride_h=stride[0],
        stride_w=stride[1],
        pad_h=cut[0],
        pad_w=cut[1],
        group=groups,
        dilation=list(dilation) if max(dilation) > 1 else None,
        shape=full,
    )
    if any(output_padding):
        for i, first in enumerate(padding):
            x = idioms.caffe.sliced(g, x, 2 + i, first, first + result[2 + i])
    return x
