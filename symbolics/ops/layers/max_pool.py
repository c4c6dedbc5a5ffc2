"""aten::max_pool1d, max_pool2d, max_pool3d."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import Ints, TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.pooling import is_one_element, planar
from tmconvert.symbolics.layouts import NHWC, SOURCE
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integers
from tmconvert.symbolics.results import end_padding, onnx_padding, overhangs, pooled
from tmconvert.symbolics.traits import (
    Homogeneous,
    Identity,
    KeepsQparams,
    Pool,
    SelectsElements,
    Spatial,
    Trait,
)
from tmconvert.symbolics.windows import last_axes, reduced, widened

Array = np.ndarray


NEVER_NEGATIVE = ("RELU", "RELU6", "RELU_0_TO_1", "LOGISTIC", "SOFTMAX")


def _op(axes: int) -> Op:
    traits: list[Trait] = [Spatial(), Pool(), Homogeneous(), Identity(is_one_element), SelectsElements()]
    op = Op(
        f"aten::max_pool{axes}d",
        args=[
            Tensor("x", (*FLOATS, "int8", "uint8"), ranks=(2 + axes,)),
            integers("kernel_size", length=axes),
            integers("stride", length=axes),
            integers("padding", [0] * axes, length=axes),
            integers("dilation", [1] * axes, length=axes),
            boolean("ceil_mode", False),
        ],
        result=pooled,
        layout=NHWC if axes == 2 else SOURCE,
        traits=[*traits, KeepsQparams()] if axes == 2 else traits,  # integer kernels pool images
    )

    @op.onnx(since=10)  # dilations are new
    def max_pool_onnx10(g, x, kernel_size, stride, padding, dilation, ceil_mode):
        # ceil_mode as padding behind the end: runtimes disagree about windows that start in the padding
        windows = (kernel_size, stride, padding, dilation, ceil_mode)
        after = end_padding(x.shape, g.result_types[0].shape, *windows)
        return g.op(
            "MaxPool",
            _apart_from_padding(g, x),
            kernel_shape=kernel_size,
            strides=stride,
            **onnx_padding(kernel_size, padding, after),
            dilations=dilation if max(dilation) > 1 else None,
        )

    @op.onnx(since=1)
    def max_pool_onnx1(g, x, kernel_size, stride, padding, dilation, ceil_mode):
        if max(dilation) > 1:
            g.refuse("ONNX MaxPool supports dilations from opset 10 on", "use --opset 10 or later")
        return max_pool_onnx10(g, x, kernel_size, stride, padding, dilation, ceil_mode)

    op.reference(maxima)
    return op


def _apart_from_padding(g: Any, x: Any) -> Any:
    """Separates ``x`` from a preceding Pad: ONNX Runtime 1.31 fuses the two and loses the padding value."""
    maker = next((each for each in reversed(g.graph.operators) if x in each.outputs), None)
    return x if maker is None or maker.type != "Pad" else g.op("Max", x)


def maxima(
    x: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Array:
    """Maxima over windows without padding, [N, C, ...] -> [N, C, ...]. Source: nn.functional.max_pool2d."""
    windows = (kernel_size, stride, padding, dilation, ceil_mode)
    shape = pooled(TensorType(x.dtype, x.shape), *windows).shape
    after = end_padding(x.shape, shape, *windows)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    result = reduced(np.maximum, widened(x, padding, after, lowest), kernel_size, stride, dilation)
    return last_axes(result, map(slice, shape[2:]))


MAX_POOLS = {axes: _op(axes) for axes in (1, 2, 3)}
OPS = list(MAX_POOLS.values())
max_pool1d, max_pool2d, max_pool3d = OPS


@max_pool1d.decompose
@max_pool3d.decompose
def max_pool_planar(g, x, kernel_size, stride, padding, dilation, ceil_mode):
    windows = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
    options = {"ceil_mode": ceil_mode}
    return planar(g, "aten::max_pool2d", x, windows, options, options)


@max_pool2d.tflite()
def max_pool2d_tflite(g, x, kernel_size, stride, padding, dilation, ceil_mode):
    spatial, outputs = x.shape[1:3], g.result_types[0].shape[1:3]
    after = overhangs(spatial, outputs, kernel_size, stride, padding, dilation)
    if is_symbolic(after):
        windows = (kernel_size, stride, padding, dilation, ceil_mode)
        after = end_padding((1, 1, *spatial), (1, 1, *outputs), *windows)
    scheme = idioms.tflite.pooling_scheme(spatial, outputs, stride, padding, after)
    if scheme is None or max(dilation) > 1:
        x = idioms.tflite.padded(g, x, padding, [max(amount, 0) for amount in after], _below_all(g, x))
    if max(dilation) > 1:
        return _spread_tflite(g, x, outputs, kernel_size, stride, dilation)
    return g.op(
        "MAX_POOL_2D",
        x,
        padding=scheme or "VALID",
        stride_h=stride[0],
        stride_w=stride[1],
        filter_height=kernel_size[0],
        filter_width=kernel_size[1],
        shape=g.result_types[0].shape,
    )


def _below_all(g: Any, x: Any) -> float:
    """Returns a number that changes no maximum: 0, the cheapest to pad with, if ``x`` is never negative."""
    if x.dtype.kind != "f":
        return int(np.iinfo(x.dtype).min)
    made = next((each.type for each in reversed(g.graph.operators) if any(x is y for y in each.outputs)), "")
    return 0.0 if made in NEVER_NEGATIVE else float(np.finfo(x.dtype).min)


def _spread_tflite(g: Any, x: Any, outputs: Any, kernel_size: Ints, stride: Ints, dilation: Ints) -> Any:
    """Emulates dilation, which MAX_POOL_2D lacks: the maximum over taps, axis by axis."""
    for axis in (1, 2):
        count, step, taps = outputs[axis - 1], stride[axis - 1], []
        for tap in range(kernel_size[axis - 1]):
            begin, end, steps = [0] * 4, list(x.shape), [1] * 4
            begin[axis], steps[axis] = tap * dilation[axis - 1], step
            end[axis] = begin[axis] + (count - 1) * step + 1
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            taps.append(g.op("STRIDED_SLICE", x, *map(g.ints, (begin, end, steps)), shape=shape))
        x = functools.reduce(lambda a, b: g.op("MAXIMUM", a, b), taps)
    return x


@max_pool2d.caffe()
def max_pool2d_caffe(g, x, kernel_size, stride, padding, dilation, ceil_mode):
    if max(dilation) > 1:
        g.refuse("Caffe's Pooling does not support dilation")
    return idioms.caffe.pooled(g, x, "MAX", kernel_size, stride, padding, g.result_types[0].shape[2:])
