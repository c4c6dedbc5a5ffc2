"""aten::avg_pool2d, the mean of each window over H and W.

Every target sums over the same windows; they differ in what they divide by. A symbolic takes the mode of the
target's operator whose divisor is right, or corrects the result by a constant factor for each output.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...ir.types import TensorType
from ..idioms import caffe, tflite
from ..layouts import NHWC
from ..op import FLOATS, Attribute, Op, Tensor, boolean, integers
from ..results import overhang, pooled

Array = np.ndarray


def _divisor(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0:
        raise ValueError(f"{value!r} is not an integer other than zero")
    return int(value)


def _result(
    x: TensorType,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> TensorType:
    return pooled(x, kernel_size, stride, padding, [1, 1], ceil_mode)


avg_pool2d = Op(
    "aten::avg_pool2d",
    args=[
        Tensor("x", FLOATS, ranks=(4,)),
        integers("kernel_size", length=2),
        integers("stride", length=2),
        integers("padding", [0, 0], length=2),
        boolean("ceil_mode", False),
        boolean("count_include_pad", True),
        Attribute("divisor_override", _divisor, None),
    ],
    result=_result,
    layout=NHWC,
)


class Windows:
    """The windows over H and W, and what each may be divided by: arrays [H', W']."""

    def __init__(
        self, spatial: Any, outputs: Any, kernel: list[int], stride: list[int], padding: list[int]
    ) -> None:
        self.spatial, self.outputs = tuple(spatial), tuple(outputs)
        self.kernel, self.stride, self.padding = kernel, stride, padding
        self.after = [overhang(spatial[i], outputs[i], kernel[i], stride[i], padding[i]) for i in (0, 1)]

    def elements(self, margin: list[int]) -> Array:
        """Elements of each window that lie in the input widened by ``margin`` on all sides."""
        counts = []
        for i in (0, 1):
            starts = np.arange(self.outputs[i]) * self.stride[i] - self.padding[i]
            ends = np.minimum(starts + self.kernel[i], self.spatial[i] + margin[i])
            counts.append(ends - np.maximum(starts, -margin[i]))
        return np.outer(*counts)

    @property
    def all(self) -> Array:
        return np.full(self.outputs, self.kernel[0] * self.kernel[1])

    def wanted(self, count_include_pad: bool, divisor_override: int | None) -> Array:
        """ATen's divisors: what ceil_mode adds behind the padding never counts."""
        if divisor_override is not None:
            return np.full(self.outputs, divisor_override)
        return self.elements(self.padding if count_include_pad else [0, 0])

    @property
    def is_global(self) -> bool:
        return self.outputs == (1, 1) and tuple(self.kernel) == self.spatial and not any(self.padding)


@avg_pool2d.reference
def avg_pool2d_ref(
    x: Array,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """Sums over windows of the input in zeros, over the divisors.

    Shapes: x [N, C, H, W] -> [N, C, H', W'].
    Source: torch.nn.functional.avg_pool2d.
    """
    type_ = TensorType(x.dtype, x.shape)
    outputs = pooled(type_, kernel_size, stride, padding, [1, 1], ceil_mode).shape[2:]
    windows = Windows(x.shape[2:], outputs, kernel_size, stride, padding)
    widths = [(padding[i], max(windows.after[i], 0)) for i in (0, 1)]
    views = sliding_window_view(np.pad(x, [(0, 0), (0, 0), *widths]), kernel_size, axis=(2, 3))
    sums = views[:, :, :: stride[0], :: stride[1]].sum((4, 5))
    return (sums / windows.wanted(count_include_pad, divisor_override)).astype(x.dtype)


@avg_pool2d.onnx(since=19)
def avg_pool2d_onnx19(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    windows = Windows(x.shape[2:], g.result_types[0].shape[2:], kernel_size, stride, padding)
    wanted = windows.wanted(count_include_pad, divisor_override)
    after = [max(amount, 0) for amount in windows.after]
    if np.array_equal(wanted, windows.elements([0, 0])) or len({*padding, *after}) == 1:
        return _averaged_onnx(g, x, windows, wanted)
    # ONNX Runtime up to 1.23 counts padding wrongly unless it is the same all around, and fuses a Pad
    # in front: a convolution has the same sums
    channels, area = x.shape[1], kernel_size[0] * kernel_size[1]
    weight = g.const(np.full((channels, 1, *kernel_size), 1 / area, x.dtype))
    shape = g.result_types[0].shape
    mean = g.op("Conv", x, weight, strides=stride, pads=padding + after, group=channels, shape=shape)
    return mean if np.array_equal(wanted, windows.all) else g.op("Mul", mean, _factor(g, windows.all, wanted))


@avg_pool2d.onnx(since=7)
def avg_pool2d_onnx7(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    windows = Windows(x.shape[2:], g.result_types[0].shape[2:], kernel_size, stride, padding)
    return _averaged_onnx(g, x, windows, windows.wanted(count_include_pad, divisor_override))


def _averaged_onnx(g: Any, x: Any, windows: Windows, wanted: Array) -> Any:
    # ceil_mode as padding behind the end: runtimes disagree about its divisors
    if windows.is_global and np.array_equal(wanted, windows.all):
        return g.op("GlobalAveragePool", x)
    without_padding = np.array_equal(wanted, windows.elements([0, 0]))
    mean = g.op(
        "AveragePool",
        x,
        kernel_shape=list(windows.kernel),
        strides=list(windows.stride),
        pads=list(windows.padding) + [max(amount, 0) for amount in windows.after],
        count_include_pad=0 if without_padding else 1,
        shape=g.result_types[0].shape,
    )
    if without_padding or np.array_equal(wanted, windows.all):
        return mean
    return g.op("Mul", mean, _factor(g, windows.all, wanted))


@avg_pool2d.tflite()
def avg_pool2d_tflite(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    result = g.result_types[0].shape
    windows = Windows(x.shape[1:3], result[1:3], kernel_size, stride, padding)
    wanted, divisors = windows.wanted(count_include_pad, divisor_override), windows.all
    if windows.is_global and np.array_equal(wanted, divisors):
        return g.op("MEAN", x, g.ints([1, 2]), keep_dims=True)
    scheme = tflite.pooling_scheme(windows.spatial, windows.outputs, stride, padding, windows.after)
    if scheme == "SAME" and not np.array_equal(wanted, windows.all):
        divisors = windows.elements([0, 0])
    elif scheme != "VALID":  # SAME never counts the padding
        scheme = "VALID"
        x = tflite.padded(g, x, padding, [max(amount, 0) for amount in windows.after])
    mean = g.op(
        "AVERAGE_POOL_2D",
        x,
        padding=scheme,
        stride_h=stride[0],
        stride_w=stride[1],
        filter_height=kernel_size[0],
        filter_width=kernel_size[1],
        shape=result,
    )
    if np.array_equal(wanted, divisors):
        return mean
    return g.op("MUL", mean, _factor(g, divisors, wanted, (1, *windows.outputs, 1)))


@avg_pool2d.caffe()  # AVE divides by the elements in the padded input, as ATen does
def avg_pool2d_caffe(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    windows = Windows(x.shape[2:], g.result_types[0].shape[2:], kernel_size, stride, padding)
    wanted = windows.wanted(count_include_pad, divisor_override)
    divisors = windows.elements(padding)
    if windows.is_global:
        mean = g.op("Pooling", x, pool="AVE", global_pooling=True, shape=g.result_types[0].shape)
    else:
        mean = caffe.pooled(g, x, "AVE", kernel_size, stride, padding, windows.outputs)
    if np.array_equal(wanted, divisors):
        return mean
    return caffe.scaled(g, mean, _factor(g, divisors, wanted, (1, 1, *windows.outputs)).data, None)


def _factor(g: Any, divisors: Array, wanted: Array, shape: tuple[int, ...] | None = None) -> Any:
    """What turns quotients by ``divisors`` into quotients by ``wanted``: one number if the same for all."""
    factor = divisors / wanted
    if np.all(factor == factor[0, 0]):
        return g.const(np.full((1,) * len(shape or ()), factor[0, 0]), g.result_types[0].dtype)
    return g.const(factor.reshape(shape or (1, 1, *factor.shape)), g.result_types[0].dtype)
