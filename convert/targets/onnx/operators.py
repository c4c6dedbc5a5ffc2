"""Records of ONNX's operators: what the converter knows of each, beyond the element types of its operands.

Operators that are not listed have an empty record. ``data/element_types.txt`` has the types of all operators
by opset, and is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

Shapes = Sequence[tuple[int, ...]]
MacsRule = Callable[[Shapes, Shapes], int]


class WeightAxes(NamedTuple):
    """``channel`` is the axis with a scale for each element; ``block`` the one that is summed over, or the
    columns of a table. Neither is negative.
    """

    channel: int
    block: int


AxesRule = Callable[[int, int, Mapping[str, Any]], WeightAxes | None]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The input index of the bias, and the output-channel axis of the weights, which are input 1."""

    bias: int | None = 2  # None: the operator has no bias
    axis: int = 0
    is_matrix: bool = False  # without spatial axes


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    """The specification of one ONNX operator."""

    name: str
    domain: str = ""
    # ---- element types (casts.py)
    # results on integers are elements of the operands, or indices: computed in floats they are the same
    selects: bool = False
    # results are clamped to the limits of their element type: computed in a wider one they differ
    saturates: bool = False
    # element types for which other operators compute it where the opset does not take them
    emulated: tuple[str, ...] = ()
    # ---- structure
    is_view: bool = False  # the elements of the first operand in their order, in another shape
    is_unary: bool = False  # elementwise, of one operand
    is_spatial: bool = False  # operands and results are images, channels at axis 1
    macs: MacsRule | None = None  # multiply-accumulates, from the shapes of operands and results
    draws_random: bool = False  # the result is random; the attribute "seed" repeats it
    # ---- versions
    inputs_since: int = 0  # the opset from which on inputs hold its sizes or bounds, instead of attributes
    # ---- quantization
    # results have the QParams of the first operand, as they consist of its elements
    keeps_qparams: bool = False
    # the Q/DQ encoding inserts a pair after it, too, so that ONNX Runtime computes it on integers
    is_between_pairs: bool = False
    clamps: bool = False  # results are those of the operand, clamped to a range
    clamps_at_zero: bool = False
    weights: Weights | None = None  # it sums products of its first two operands
    # the axes of constants that are stored as narrower types, from index, rank and attributes
    weight_axes: AxesRule | None = None


# ---- multiply-accumulates, from the shapes of operands and results


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


# ---- the axes of weights, by the index among the inputs, the rank and the attributes; None for other inputs


def _weights_of_convolution(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    return WeightAxes(0, 1) if index == 1 else None


def _weights_of_transposed(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    return WeightAxes(1, 0) if index == 1 else None


def _weights_of_recurrent(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    return WeightAxes(1, 2) if index in (1, 2) else None


def _weights_of_table(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    """Rows that are gathered."""
    return None if index or attributes.get("axis", 0) else WeightAxes(0, rank - 1)


def _weights_of_gemm(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    if index > 1:
        return None
    is_transposed = bool(attributes.get("transB" if index else "transA", 0))
    rows, columns = (1, 0) if is_transposed else (0, 1)
    return WeightAxes(rows, columns) if index == 0 else WeightAxes(columns, rows)


def _weights_of_product(index: int, rank: int, attributes: Mapping[str, Any]) -> WeightAxes | None:
    rows, columns = rank - 2, rank - 1
    return WeightAxes(rows, columns) if index == 0 else WeightAxes(columns, rows)


# ---- the records


def _selecting(*names: str, is_spatial: bool = False) -> tuple[OperatorSpec, ...]:
    """Records of operators whose results are elements of their operands, or indices."""
    return tuple(OperatorSpec(name=name, selects=True, is_spatial=is_spatial) for name in names)


def _spatial(*names: str) -> tuple[OperatorSpec, ...]:
    """Records of operators on images."""
    return tuple(OperatorSpec(name=name, is_spatial=True) for name in names)


def _moving(*names: str, **facts: Any) -> tuple[OperatorSpec, ...]:
    """Records of operators that only move or pick elements of one operand, also on integers."""
    moving = OperatorSpec(name="", selects=True, keeps_qparams=True, is_between_pairs=True)
    return tuple(replace(moving, name=name, **facts) for name in names)


_SPECS = (
    # ---- random numbers
    OperatorSpec(name="RandomUniformLike", draws_random=True),
    OperatorSpec(name="RandomNormalLike", draws_random=True),
    # ---- weights
    OperatorSpec(
        name="Conv",
        weights=Weights(),
        is_spatial=True,
        macs=_convolution,
        weight_axes=_weights_of_convolution,
    ),
    OperatorSpec(
        name="ConvTranspose",
        weights=Weights(axis=1),
        is_spatial=True,
        macs=_transposed,
        weight_axes=_weights_of_transposed,
    ),
    OperatorSpec(name="Gemm", weights=Weights(is_matrix=True), macs=_gemm, weight_axes=_weights_of_gemm),
    OperatorSpec(
        name="MatMul",
        weights=Weights(bias=None, axis=1, is_matrix=True),
        macs=_product,
        weight_axes=_weights_of_product,
        emulated=("uint8", "int8", "int16", "int32"),
    ),
    OperatorSpec(name="MatMulNBits", domain="com.microsoft", macs=_product),
    # ---- recurrent layers
    *(
        OperatorSpec(name=name, macs=_recurrent, weight_axes=_weights_of_recurrent)
        for name in ("GRU", "LSTM", "RNN")
    ),
    # ---- functions of single elements
    *(OperatorSpec(name=name, is_unary=True) for name in ("Cast", "Cos", "Sin")),
    # ---- integers
    OperatorSpec(name="DynamicQuantizeLinear", saturates=True),
    OperatorSpec(name="ConvInteger", is_spatial=True, macs=_convolution),
    OperatorSpec(name="MatMulInteger", macs=_product),
    OperatorSpec(name="QLinearConv", saturates=True, is_spatial=True, macs=_quantized_convolution),
    OperatorSpec(name="QLinearMatMul", saturates=True, macs=_product),
    OperatorSpec(name="QuantizeLinear", saturates=True),
    # ---- clamps
    OperatorSpec(name="Clip", selects=True, emulated=("int32",), inputs_since=11, clamps=True),
    OperatorSpec(name="Max", selects=True, emulated=("int32",)),
    OperatorSpec(name="Min", selects=True, emulated=("int32",)),
    OperatorSpec(name="Relu", selects=True, emulated=("int32",), clamps=True, clamps_at_zero=True),
    # ---- elements of one operand
    *_moving("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze", is_view=True),
    *_moving("Transpose"),
    *_moving("MaxPool", is_spatial=True),
    OperatorSpec(name="Slice", selects=True, inputs_since=10, keeps_qparams=True, is_between_pairs=True),
    OperatorSpec(name="Split", selects=True, keeps_qparams=True),
    # ---- elements of operands, and indices
    OperatorSpec(name="Pad", selects=True, inputs_since=11),
    OperatorSpec(name="Resize", selects=True, inputs_since=11),
    OperatorSpec(name="Upsample", selects=True, inputs_since=9),
    *_selecting("ArgMax", "ArgMin", "Compress", "Concat", "Equal", "Expand"),
    OperatorSpec(name="Gather", selects=True, weight_axes=_weights_of_table),
    *_selecting("GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Less"),
    *_selecting("LessOrEqual", "NonZero", "OneHot", "ReduceMax", "ReduceMin", "ReverseSequence", "Scatter"),
    *_selecting("ScatterElements", "ScatterND", "Sign", "Tile", "TopK", "Trilu", "Unique"),
    *_selecting("Where"),
    # ---- images
    *_selecting("DepthToSpace", "GlobalMaxPool", "SpaceToDepth", is_spatial=True),
    *_spatial("AveragePool", "BatchNormalization", "GlobalAveragePool", "GlobalLpPool", "GroupNormalization"),
    *_spatial("InstanceNormalization", "LRN", "LpPool", "MaxRoiPool", "RoiAlign"),
)
SPECS: dict[str, OperatorSpec] = {each.name: each for each in _SPECS}


def axes_of_weight(
    operator_type: str, attributes: Mapping[str, Any], index: int, rank: int
) -> WeightAxes | None:
    """Returns the axes of the weight that is the input ``index``; None for other inputs.

    >>> axes_of_weight("Gemm", {"transB": 1}, 1, 2)
    WeightAxes(channel=0, block=1)
    """
    rule = spec(operator_type).weight_axes
    return None if rule is None or rank < 2 else rule(index, rank, attributes)


def spec(name: str) -> OperatorSpec:
    """Returns the record of an operator.

    >>> spec("Conv").weights
    Weights(bias=2, axis=0)
    """
    return SPECS.get(name) or OperatorSpec(name=name)
