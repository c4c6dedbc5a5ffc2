"""aten::avg_pool1d, avg_pool2d, avg_pool3d: the mean of each window.

Every target sums over the same windows; they differ in what they divide by. A symbolic takes the mode of the
target's operator whose divisor is right, or corrects the result by a constant factor for each output.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir import TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import Ints, TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.pooling import counted, is_one_element, planar
from tmconvert.symbolics.layouts import NHWC, SOURCE
from tmconvert.symbolics.op import FLOATS, Attribute, Op, Tensor, boolean, integers
from tmconvert.symbolics.results import end_padding, pooled
from tmconvert.symbolics.traits import Average, Homogeneous, Identity, KeepsQparams, Pool, Spatial, Trait
from tmconvert.symbolics.windows import Windows, last_axes, reduced, widened

Array = np.ndarray


def _divisor(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0:
        raise ValueError(f"{value!r} is not an integer other than zero")
    return int(value)


def _result(
    x: TensorType, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool, **_: Any
) -> TensorType:
    return pooled(x, kernel_size, stride, padding, [1] * len(kernel_size), ceil_mode)


def averaged(
    x: Array, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    """Sums over windows of the zero-padded input, divided by the divisors.

    Shapes: x [N, C, ...] -> [N, C, ...]. Source: torch.nn.functional.avg_pool2d.
    """
    ones = [1] * len(kernel_size)
    outputs = pooled(TensorType(x.dtype, x.shape), kernel_size, stride, padding, ones, ceil_mode).shape[2:]
    windows = Windows(x.shape[2:], outputs, kernel_size, stride, padding)
    precise = x.astype(np.promote_types(x.dtype, np.float32), copy=False)
    filled = widened(precise, padding, [max(amount, 0) for amount in windows.after])
    sums = reduced(np.add, filled, kernel_size, stride, ones)
    sums = last_axes(sums, map(slice, outputs))
    return (sums / windows.wanted(count_include_pad, divisor_override)).astype(x.dtype)


def _is_identity(divisor_override: int | None, **attributes: Any) -> bool:
    return is_one_element(**attributes) and divisor_override in (None, 1)


def _op(axes: int) -> Op:
    traits: list[Trait] = [Spatial(), Pool(), Average(), Homogeneous(), Identity(_is_identity)]
    op = Op(
        f"aten::avg_pool{axes}d",
        args=[
            Tensor("x", FLOATS, ranks=(2 + axes,)),
            integers("kernel_size", length=axes),
            integers("stride", length=axes),
            integers("padding", [0] * axes, length=axes),
            boolean("ceil_mode", False),
            boolean("count_include_pad", True),
            Attribute("divisor_override", _divisor, None),
        ],
        result=_result,
        layout=NHWC if axes == 2 else SOURCE,
        traits=[*traits, KeepsQparams()] if axes == 2 else traits,  # integer kernels pool images
    )
    op.reference(averaged)
    op.onnx(since=19)(avg_pool_onnx19)
    op.onnx(since=7)(avg_pool_onnx7)
    return op


def avg_pool_onnx7(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    windows = (kernel_size, stride, padding, [1] * len(stride), ceil_mode)
    after = end_padding(x.shape, g.result_types[0].shape, *windows)
    # without padding, what ceil_mode adds at the end is not counted, either
    counts = count_include_pad and (any(padding) or not is_symbolic((x.shape or ())[2:]))
    excluded = not counts and divisor_override is None
    if tuple(kernel_size) == x.shape[2:] and not any(padding):
        mean = g.op("GlobalAveragePool", x, shape=g.result_types[0].shape)
    else:
        mean = g.op(
            "AveragePool",
            x,
            kernel_shape=kernel_size,
            strides=stride,
            pads=[*padding, *after],
            count_include_pad=0 if excluded or not any([*padding, *after]) else 1,
            shape=g.result_types[0].shape,
        )
    exact = excluded or (not ceil_mode and divisor_override is None)
    return mean if exact else _corrected(g, x, mean, kernel_size, stride, padding, divisor_override)


def avg_pool_onnx19(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    windows = (kernel_size, stride, padding, [1] * len(stride), ceil_mode)
    after = end_padding(x.shape, g.result_types[0].shape, *windows)
    if (not count_include_pad and divisor_override is None) or len({*padding, *after}) == 1:
        return avg_pool_onnx7(
            g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    # ONNX Runtime up to 1.23 counts padding wrongly unless it is the same all around, and fuses a Pad
    # in front: a convolution has the same sums
    channels, area = x.shape[1], math.prod(kernel_size)
    weight = g.const(np.full((channels, 1, *kernel_size), 1 / area, x.dtype))
    shape = g.result_types[0].shape
    mean = g.op("Conv", x, weight, strides=stride, pads=[*padding, *after], group=channels, shape=shape)
    exact = not ceil_mode and divisor_override is None
    return mean if exact else _corrected(g, x, mean, kernel_size, stride, padding, divisor_override)


def _corrected(
    g: Any, x: Any, mean: Any, kernel: Ints, stride: Ints, padding: Ints, divisor: int | None
) -> Any:
    """Converts ``mean`` over whole windows, padding included, to ATen's divisors."""
    if divisor is not None and is_symbolic(x.shape[2:]):
        return (
            mean if divisor == math.prod(kernel) else g.op("Mul", mean, g.const(math.prod(kernel) / divisor))
        )
    windows = Windows(x.shape[2:], g.result_types[0].shape[2:], kernel, stride, padding)
    wanted = windows.wanted(True, divisor)
    return mean if np.array_equal(wanted, windows.all) else g.op("Mul", mean, _factor(g, windows.all, wanted))


AVG_POOLS = {axes: _op(axes) for axes in (1, 2, 3)}
OPS = list(AVG_POOLS.values())
avg_pool1d, avg_pool2d, avg_pool3d = OPS


@avg_pool1d.decompose
@avg_pool3d.decompose
def avg_pool_planar(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Divisors are products of counts per axis, so that two steps can also divide by them."""
    windows = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    sums = None if divisor_override is None else 1
    return planar(
        g,
        "aten::avg_pool2d",
        x,
        windows,
        {**options, "divisor_override": divisor_override},
        {**options, "divisor_override": sums},
    )


def is_averaged_by_onnx(x: TensorNode, padding: Ints, count_include_pad: bool, **attributes: Any) -> bool:
    """AveragePool counts all of the padding or none, but not that of one side alone."""
    counts = count_include_pad and any(padding)
    return not counts or is_averaged_by_tflite(x, padding, count_include_pad, **attributes)


@avg_pool2d.native_where("tflite")
def is_averaged_by_tflite(x: TensorNode, padding: Ints, count_include_pad: bool, **attributes: Any) -> bool:
    """Whether one number divides all windows, or their sizes are known."""
    differs = attributes["ceil_mode"] or (any(padding) and not count_include_pad)
    return attributes["divisor_override"] is not None or not differs or not is_symbolic((x.shape or ())[2:])


for _average in OPS:
    _average.native_where("onnx")(is_averaged_by_onnx)


avg_pool2d.decompose(counted, needs_itself=True)


@avg_pool2d.tflite()
def avg_pool2d_tflite(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    result = g.result_types[0].shape
    windows = Windows(x.shape[1:3], result[1:3], kernel_size, stride, padding)
    if is_symbolic((windows.spatial, windows.outputs)):
        return _of_any_size(g, x, windows, ceil_mode, divisor_override)
    wanted, divisors = windows.wanted(count_include_pad, divisor_override), windows.all
    if windows.is_global and np.array_equal(wanted, divisors):
        return g.op("MEAN", x, g.ints([1, 2]), keep_dims=True)
    scheme = idioms.tflite.pooling_scheme(windows.spatial, windows.outputs, stride, padding, windows.after)
    if scheme == "SAME" and not np.array_equal(wanted, windows.all):
        divisors = windows.within
    elif scheme != "VALID":  # SAME never counts the padding
        scheme = "VALID"
        x = idioms.tflite.padded(g, x, padding, [max(amount, 0) for amount in windows.after])
    mean = _windows_averaged(g, x, windows, scheme)
    if np.array_equal(wanted, divisors):
        return mean
    return g.op("MUL", mean, _factor(g, divisors, wanted, (1, *windows.outputs, 1)))


def _of_any_size(g: Any, x: Any, windows: Windows, ceil_mode: bool, divisor: int | None) -> Any:
    """TFLite: windows with equally many elements for every image size."""
    area = math.prod(windows.kernel)
    if windows.is_global and divisor in (None, area):
        return g.op("MEAN", x, g.ints([1, 2]), keep_dims=True)
    taps = (windows.kernel, windows.stride, windows.padding, [1, 1], ceil_mode)
    after = end_padding((0, 0, *windows.spatial), (0, 0, *windows.outputs), *taps)
    x = idioms.tflite.padded(g, x, windows.padding, after)
    mean = _windows_averaged(g, x, windows, "VALID")
    return mean if divisor in (None, area) else g.op("MUL", mean, g.const(area / divisor))


def _windows_averaged(g: Any, x: Any, windows: Windows, scheme: str) -> Any:
    return g.op(
        "AVERAGE_POOL_2D",
        x,
        padding=scheme,
        stride_h=windows.stride[0],
        stride_w=windows.stride[1],
        filter_height=windows.kernel[0],
        filter_width=windows.kernel[1],
        shape=g.result_types[0].shape,
    )


@avg_pool2d.caffe()  # AVE divides by the elements in the padded input, as ATen does
def avg_pool2d_caffe(g, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    windows = Windows(x.shape[2:], g.result_types[0].shape[2:], kernel_size, stride, padding)
    wanted = windows.wanted(count_include_pad, divisor_override)
    divisors = windows.elements(padding)
    if windows.is_global:
        mean = idioms.caffe.pooled(g, x, "AVE", x.shape[2:], [1, 1], [0, 0], [1, 1])
    elif not g.allows("Pooling", "padding of averages", max(padding)):
        mean, divisors = idioms.caffe.averaged(g, x, kernel_size, stride, padding), windows.all
    else:
        mean = idioms.caffe.pooled(g, x, "AVE", kernel_size, stride, padding, windows.outputs)
    if np.array_equal(wanted, divisors):
        return mean
    return idioms.caffe.scaled(g, mean, _factor(g, divisors, wanted, (1, 1, *windows.outputs)).data, None)


def _factor(g: Any, divisors: Array, wanted: Array, shape: tuple[int, ...] | None = None) -> Any:
    """Returns the factor from ``divisors`` to ``wanted``: one number if it is the same for all."""
    factor = divisors / wanted
    if np.all(factor == factor.flat[0]):
        return g.const(np.full((1,) * len(shape or ()), factor.flat[0]), g.result_types[0].dtype)
    return g.const(factor.reshape(shape or (1, 1, *factor.shape)), g.result_types[0].dtype)
