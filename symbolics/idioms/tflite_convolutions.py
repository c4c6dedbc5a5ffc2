"""2-d convolutions in TFLite's operators: ``x`` is channels-last, weights are in the source's layout."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.types import Ints
from tmconvert.symbolics.idioms import tflite

if TYPE_CHECKING:
    from tmconvert.ir import QParams


def conv2d_tflite(
    g: Any, x: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    """aten::conv2d of ``x`` [N, H, W, C] with ``weight`` [O, C / groups, kH, kW]."""
    out_channels, _, *kernel = weight.shape
    outputs = [
        (x.shape[1 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1)
    ]
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
        "shape": (x.shape[0], *outputs, out_channels),
    }
    if groups > 1 and groups == x.shape[3]:
        weight = tflite.transposed(g, weight, (1, 2, 3, 0))
        multiplier = out_channels // groups
        return g.op("DEPTHWISE_CONV_2D", x, weight, bias, depth_multiplier=multiplier, **options)
    return g.op("CONV_2D", x, tflite.transposed(g, weight, (0, 2, 3, 1)), bias, **options)


def stuffed_tflite(
    g: Any, x: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, groups: int, dilation: Ints
) -> Any:
    """aten::conv_transpose2d with groups or dilation, which TFLite's TRANSPOSE_CONV does not have.

    A convolution of the input with zeros between its elements, by the kernels turned round.
    """
    if not weight.is_constant:
        g.refuse("TFLite requires constant weights for a transposed convolution with groups or dilation")
    batch, height, width, channels = x.shape
    if stride[1] > 1:
        rows = tflite.reshaped(g, x, (batch * height, width, 1, channels))
        x = tflite.padded(g, rows, [0, 0], [0, stride[1] - 1])
    if stride[0] > 1:
        rows = tflite.reshaped(g, x, (batch * height, 1, width * stride[1], channels))
        x = tflite.padded(g, rows, [0, 0], [stride[0] - 1, 0])
    x = tflite.reshaped(g, x, (batch, height * stride[0], width * stride[1], channels))
    outputs, kernel = g.result_types[0].shape, weight.shape[2:]
    before = [dilation[i] * (kernel[i] - 1) - padding[i] for i in (0, 1)]
    after = [outputs[1 + i] - x.shape[1 + i] + padding[i] for i in (0, 1)]
    wide = [[max(amount, 0) for amount in ends] for ends in (before, after)]
    x = tflite.padded(g, x, wide[0], wide[1])
    cut = [max(-amount, 0) for amount in before]
    extents = [outputs[1 + i] + dilation[i] * (kernel[i] - 1) for i in (0, 1)]
    if list(x.shape[1:3]) != extents:
        part = (batch, *extents, channels)
        x = g.op("SLICE", x, g.ints([0, *cut, 0]), g.ints(part), shape=part)
    rotated = weight.data[:, :, ::-1, ::-1].reshape(groups, channels // groups, -1, *kernel)
    rotated = np.ascontiguousarray(rotated.swapaxes(1, 2)).reshape(-1, channels // groups, *kernel)
    kernels = g.const(rotated, name=f"{weight.name}_turned", qparams=_by_output(weight.qparams, groups))
    return conv2d_tflite(g, x, kernels, bias, [1, 1], [0, 0], dilation, groups)


def _by_output(qparams: QParams | None, groups: int) -> QParams | None:
    """Returns the QParams of weights [inputs, outputs of a group, ...] along the outputs."""
    if qparams is None or qparams.channel_axis is None:
        return qparams
    if qparams.channel_axis != 1:
        return None
    return replace(
        qparams, scale=qparams.scale * groups, zero_point=qparams.zero_point * groups, channel_axis=0
    )
