"""Multiply-accumulates of Caffe layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

Shapes = Sequence[tuple[int, ...]]


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][1:])


def _transposed(inputs: Shapes, outputs: Shapes) -> int:
    return prod(inputs[0]) * prod(inputs[1][1:])


def _dense(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1]) // max(outputs[0][-1], 1)


def _product(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * inputs[0][-1]


MACS: dict[str, Callable[[Shapes, Shapes], int]] = {
    "Convolution": _convolution,
    "ConvolutionDepthwise": _convolution,
    "DepthwiseConvolution": _convolution,
    "Deconvolution": _transposed,
    "InnerProduct": _dense,
    "MatMul": _product,
}
# whose bottoms have channels at axis 1
SPATIAL = frozenset(
    {
        *("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution", "Deconvolution", "Pooling", "LRN"),
        *("BatchNorm", "Interp", "Upsample", "Resize", "Crop", "PriorBox"),
    }
)
