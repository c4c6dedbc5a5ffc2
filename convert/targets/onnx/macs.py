"""Multiply-accumulates of ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

Shapes = Sequence[tuple[int, ...]]


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[1][1:])


def _transposed(inputs: Shapes, outputs: Shapes) -> int:
    return prod(inputs[0]) * prod(inputs[1][1:])


def _quantized_convolution(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * prod(inputs[3][1:])


def _product(inputs: Shapes, outputs: Shapes) -> int:
    return prod(outputs[0]) * inputs[0][-1]


def _gemm(inputs: Shapes, outputs: Shapes) -> int:
    """The inner size is the rest of the first operand after the rows, however both are transposed."""
    return prod(outputs[0]) * prod(inputs[0]) // max(outputs[0][0], 1)


def _recurrent(inputs: Shapes, outputs: Shapes) -> int:
    """Each step and sample multiplies by all of W and R."""
    steps, batch = inputs[0][0], inputs[0][1]
    return steps * batch * (prod(inputs[1]) + prod(inputs[2]))


MACS: dict[str, Callable[[Shapes, Shapes], int]] = {
    "Conv": _convolution,
    "ConvInteger": _convolution,
    "QLinearConv": _quantized_convolution,
    "ConvTranspose": _transposed,
    "Gemm": _gemm,
    "MatMul": _product,
    "MatMulInteger": _product,
    "QLinearMatMul": _product,
    "MatMulNBits": _product,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
}
# whose operands have channels at axis 1
SPATIAL = frozenset(
    {
        *("Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalMaxPool"),
        *("GlobalAveragePool", "BatchNormalization", "InstanceNormalization", "LRN", "SpaceToDepth"),
        *("DepthToSpace", "GroupNormalization", "LpPool", "GlobalLpPool", "MaxRoiPool", "RoiAlign"),
    }
)
