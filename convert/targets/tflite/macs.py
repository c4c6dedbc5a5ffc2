"""Multiply-accumulates of TFLite operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

Shapes = Sequence[tuple[int, ...]]


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][1:])


def _depthwise(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][:-1])


def _convolution_3d(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][:-1])


def _transposed(inputs: Shapes, outputs: Shapes) -> int:
    """Weights [O, H, W, I], and the image is the third operand."""
    return prod(inputs[2]) * prod(inputs[1][:-1])


def _dense(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * inputs[1][-1]


def _product(inputs: Shapes, outputs: Shapes) -> int:
    """Operands may be transposed: the inner size is the rest of the first one after the rows."""
    return prod(outputs[0]) * prod(inputs[0]) // max(prod(outputs[0][:-1]), 1)


MACS: dict[str, Callable[[Shapes, Shapes], int]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "CONV_3D": _convolution_3d,
    "TRANSPOSE_CONV": _transposed,
    "FULLY_CONNECTED": _dense,
    "BATCH_MATMUL": _product,
}
# whose operands have channels last
SPATIAL = frozenset(
    {
        *("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D", "RESIZE_BILINEAR"),
        *("RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "LOCAL_RESPONSE_NORMALIZATION"),
    }
)
