"""Multiply-accumulates of TFLite operators, from the shapes of their operands and results."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Shapes = Sequence[tuple[int, ...]]


def convolution(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][1:])


def depthwise(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][:-1])


def convolution_3d(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][:-1])


def transposed(inputs: Shapes, outputs: Shapes) -> int:
    """Weights [O, H, W, I], and the image is the third operand."""
    return prod(inputs[2]) * prod(inputs[1][:-1])


def dense(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * inputs[1][-1]


def product(inputs: Shapes, outputs: Shapes) -> int:
    """Operands may be transposed: the inner size is the rest of the first one after the rows."""
    return prod(outputs[0]) * prod(inputs[0]) // max(prod(outputs[0][:-1]), 1)
