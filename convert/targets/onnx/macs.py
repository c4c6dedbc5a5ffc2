"""Multiply-accumulates of ONNX operators, from the shapes of their operands and results."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Shapes = Sequence[tuple[int, ...]]


def convolution(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][1:])


def transposed(inputs: Shapes, outputs: Shapes) -> int:
    return prod(inputs[0]) * prod(inputs[1][1:])


def quantized_convolution(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[3][1:])


def product(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * inputs[0][-1]


def gemm(inputs: Shapes, outputs: Shapes) -> int:
    """The inner size is the rest of the first operand after the rows, however both are transposed."""
    return prod(outputs[0]) * prod(inputs[0]) // max(outputs[0][0], 1)


def recurrent(inputs: Shapes, outputs: Shapes) -> int:
    """Each step and sample multiplies by all of W and R."""
    steps, batch = inputs[0][0], inputs[0][1]
    return steps * batch * (prod(inputs[1]) + prod(inputs[2]))
