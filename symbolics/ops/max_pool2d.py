"""aten::max_pool2d, the largest element of each window over H and W."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..idioms import caffe, tflite
from ..layouts import NHWC
from ..op import FLOATS, Op, Tensor, boolean, integers
from ..results import overhang, pooled

Array = np.ndarray

max_pool2d = Op(
    "aten::max_pool2d",
    args=[
        Tensor("x", FLOATS, ranks=(4,)),
        integers("kernel_size", length=2),
        integers("stride", length=2),
        integers("padding", [0, 0], length=2),
        integers("dilation", [1, 1], length=2),
        boolean("ceil_mode", False),
    ],
    result=pooled,
    layout=NHWC,
)


@max_pool2d.reference
def max_pool2d_ref(
    x: Array,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> Array:
    """Maxima over windows; padding counts as minus infinity.

    Shapes: x [N, C, H, W] -> [N, C, H', W'].
    Source: torch.nn.functional.max_pool2d.
    """
    reach = [dilation[i] * (kernel_size[i] - 1) + 1 for i in (0, 1)]
    # behind the end, room for the window that ceil_mode adds
    widths = [(padding[i], padding[i] + (stride[i] - 1 if ceil_mode else 0)) for i in (0, 1)]
    filled = np.pad(x, [(0, 0), (0, 0), *widths], constant_values=-np.inf)
    windows = sliding_window_view(filled, reach, axis=(2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    starts = [np.arange(windows.shape[2 + i]) * stride[i] - padding[i] for i in (0, 1)]
    windows = windows[:, :, starts[0] < x.shape[2]][:, :, :, starts[1] < x.shape[3]]
    return windows.max((4, 5))


def _ends(
    spatial: Sequence[int],
    outputs: Sequence[int],
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: Sequence[int] = (1, 1),
) -> list[int]:
    """By how much the windows reach beyond the ends of H and W."""
    return [
        overhang(spatial[i], outputs[i], kernel_size[i], stride[i], padding[i], dilation[i]) for i in (0, 1)
    ]


@max_pool2d.onnx(since=10)  # dilations are new
def max_pool2d_onnx10(g, x, kernel_size, stride, padding, dilation, ceil_mode):
    # ceil_mode as padding behind the end: runtimes disagree about windows that start in the padding
    after = _ends(x.shape[2:], g.result_types[0].shape[2:], kernel_size, stride, padding, dilation)
    return g.op(
        "MaxPool",
        x,
        kernel_shape=kernel_size,
        strides=stride,
        pads=padding + [max(amount, 0) for amount in after],
        dilations=dilation if max(dilation) > 1 else None,
    )


@max_pool2d.onnx(since=1)
def max_pool2d_onnx1(g, x, kernel_size, stride, padding, dilation, ceil_mode):
    if max(dilation) > 1:
        g.refuse("ONNX MaxPool has dilations since opset 10", "use --opset 10 or later")
    return max_pool2d_onnx10(g, x, kernel_size, stride, padding, dilation, ceil_mode)


@max_pool2d.tflite()
def max_pool2d_tflite(g, x, kernel_size, stride, padding, dilation, ceil_mode):
    if max(dilation) > 1:
        g.refuse("TFLite's MAX_POOL_2D has no dilation")
    spatial, outputs = x.shape[1:3], g.result_types[0].shape[1:3]
    after = _ends(spatial, outputs, kernel_size, stride, padding)
    scheme = tflite.pooling_scheme(spatial, outputs, stride, padding, after)
    if scheme is None:
        lowest = float(np.finfo(x.dtype).min)
        x = tflite.padded(g, x, padding, [max(amount, 0) for amount in after], lowest)
    return g.op(
        "MAX_POOL_2D",
        x,
        padding=scheme or "VALID",
        stride_h=stride[0],
        stride_w=stride[1],
        filter_height=kernel_size[0],
        filter_width=kernel_size[1],
    )


@max_pool2d.caffe()
def max_pool2d_caffe(g, x, kernel_size, stride, padding, dilation, ceil_mode):
    if max(dilation) > 1:
        g.refuse("Caffe's Pooling has no dilation")
    return caffe.pooled(g, x, "MAX", kernel_size, stride, padding, g.result_types[0].shape[2:])
