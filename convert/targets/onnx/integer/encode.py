"""Inserts QuantizeLinear/DequantizeLinear pairs where ONNX Runtime fuses them: the stage ``encode``.

Every tensor to which the source gives QParams is quantized with them after the operator that makes it;
weights are integers before a DequantizeLinear, biases 32-bit integers with the scale of the products.
Operators that only select or move elements, and ReLU, are between two pairs with the same QParams, so that
the operator before them is computed on integers, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.bias_scales import widen_scales
from tmconvert.lowering.origins import Origin, Role
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.integer.model import QdqGraph
from tmconvert.targets.onnx.integer.pairs import BIAS_LIMITS, PER_CHANNEL_SINCE, Pairs, quantize_constant
from tmconvert.targets.onnx.integer.types import lacking_type, saturates, stored_type, unsigned_qparams
from tmconvert.targets.onnx.operators import spec

_LARGEST_PRODUCT = 255 * 128  # of two bytes, which kernels add to a bias
_LEAST_LIMIT = 2**24  # of a bias, for layers with very many terms


def encode(
    graph: TargetGraph, all_qparams: Mapping[Value, QParams], activations: str, weight_type: str
) -> QdqGraph:
    """Returns a copy of ``graph`` with pairs for these QParams, which are those in the file.

    Raises Refusal for constants that the opset of ``graph`` cannot express.
    """
    made = QdqGraph(replace(graph, operators=[], origins=_without_qparams(graph)))
    pairs = Pairs(graph, all_qparams, made)
    operands = _Operands(pairs, activations, weight_type)
    for value in graph.inputs:
        if value in all_qparams:
            pairs.round(value, value, Role.DEQUANTIZED)
    for operator in graph.operators:
        inputs = operands.of(operator)
        outputs = [pairs.raw_output(value) for value in operator.outputs]
        made.graph.operators.append(replace(operator, inputs=inputs, outputs=outputs))
        for value, raw in zip(operator.outputs, outputs, strict=True):
            if raw is not value:
                pairs.round(value, raw, Role.TENSOR)
    made.graph.outputs = [pairs.rounded.get(value, value) for value in graph.outputs]
    made.graph.complete_origins()
    return made


class _Operands:
    """The operands of operators: what takes the place of tensors, constants and biases as integers."""

    def __init__(self, pairs: Pairs, activations: str, weight_type: str) -> None:
        self.pairs, self.all_qparams = pairs, pairs.all_qparams
        self.activations, self.weight_type = activations, weight_type

    def of(self, operator: Operator) -> list[Value | None]:
        inputs: list[Value | None] = [
            self._constant(operator, position)
            if value is not None and value.is_constant
            else value and self.pairs.rounded.get(value, value)
            for position, value in enumerate(operator.inputs)
        ]
        weights = spec(operator.type).weights
        if weights is not None and weights.bias is not None:
            self._quantize_bias(operator, inputs, weights.bias, weights.axis)
            self._keep_float(operator, inputs)
        return inputs

    def _keep_float(self, operator: Operator, inputs: list[Value | None]) -> None:
        """Inserts a sum of one operand before an operator whose weight the source keeps in float.

        Between pairs ONNX Runtime would round that to int8 on a scale of its own, and saturate.
        """
        x, weight = operator.inputs[:2]
        if weight is None or x not in self.all_qparams or operator.outputs[0] not in self.all_qparams:
            return
        key = weight, None, "float32"
        if key not in self.pairs.constants or inputs[1] is not self.pairs.constants[key]:
            return
        given = inputs[0]
        assert given is not None
        name = self.pairs.names.free(f"{operator.outputs[0].name}_operand")
        inputs[0] = made = Value(name, given.dtype, given.shape)
        self.pairs.append("Sum", [given], made)

    def _constant(self, operator: Operator, position: int) -> Value:
        value = operator.inputs[position]
        assert value is not None
        qparams = self._qparams(operator, position)
        if qparams is None or value.dtype != np.float32 or qparams.dtype == "int32":
            return self.pairs.float_constant(value)
        is_factor = spec(operator.type).weights is not None and position < 2
        dtype = stored_type(qparams, self.pairs.opset, is_weight=is_factor and position == 1)
        if dtype is None:
            raise lacking_type(value.name, qparams, self.pairs.opset)
        other = operator.inputs[1 - position] if is_factor else None
        if is_factor and dtype == "int8" and self._saturates(value, qparams, other):
            if self.weight_type == "uint8":
                return self.pairs.constant(value, unsigned_qparams(qparams), "uint8")
            self.pairs.made.saturating.append(operator.name)
        return self.pairs.constant(value, qparams, dtype)

    def _saturates(self, value: Value, qparams: QParams, other: Value | None) -> bool:
        """Whether kernels may overflow for sums of products of the constant, as int8, and ``other``."""
        found = None if other is None else self.all_qparams.get(other)
        if found is None and not self.activations.endswith("8"):
            return False
        assert value.data is not None
        # without QParams, kernels may compute integers all the same, of the operands of what makes ``other``
        return saturates(quantize_constant(value.data, qparams, "int8"), found)

    def _qparams(self, operator: Operator, position: int) -> QParams | None:
        """Returns the QParams of a constant; those of weights are as large as the bias needs."""
        value, weights = operator.inputs[position], spec(operator.type).weights
        qparams = None if value is None else value.qparams
        if weights is None or weights.bias is None or position != 1 or qparams is None or value is None:
            return qparams
        bias = operator.inputs[weights.bias] if weights.bias < len(operator.inputs) else None
        x = None if operator.inputs[0] is None else self.all_qparams.get(operator.inputs[0])
        if x is None or bias is None or bias.data is None or qparams.channel_axis not in (None, weights.axis):
            return qparams
        assert value.data is not None
        count, channels = value.data.size // value.data.shape[weights.axis], bias.data.size
        most = max(BIAS_LIMITS[1] - count * _LARGEST_PRODUCT, _LEAST_LIMIT)
        wide = widen_scales(qparams, x.scale[0], bias.data, most, 0.0)
        if wide is qparams or qparams.channel_axis is not None or self.pairs.opset < PER_CHANNEL_SINCE:
            return wide
        each = replace(  # of the other channels the scale stays
            qparams,
            scale=qparams.scale * channels,
            zero_point=qparams.zero_point * channels,
            channel_axis=weights.axis,
        )
        return widen_scales(each, x.scale[0], bias.data, most, 0.0)

    def _quantize_bias(
        self, operator: Operator, inputs: list[Value | None], position: int, axis: int
    ) -> None:
        """Replaces the bias by int32, where input and weights are integers: else ONNX Runtime would do so."""
        x, weight = operator.inputs[:2]
        bias = operator.inputs[position] if position < len(operator.inputs) else None
        given = None if x is None else self.all_qparams.get(x)
        if given is None or weight is None or bias is None or bias.data is None or not weight.is_constant:
            return
        qparams = self._qparams(operator, 1)
        if qparams is None or qparams.channel_axis not in (None, axis):
            return
        if any(qparams.zero_point) and not qparams.dtype.endswith("8"):
            return  # of fewer bits, which ONNX Runtime multiplies in float
        scales = np.float64(given.scale[0]) * np.array(qparams.scale)
        scales = tuple(map(float, scales.astype(np.float32)))
        channel_axis = None if len(scales) == 1 else 0
        products = QParams("int32", scales, (0,) * len(scales), *BIAS_LIMITS, channel_axis)
        inputs[position] = self.pairs.constant(bias, products, "int32")


def _without_qparams(graph: TargetGraph) -> dict[Value, Origin]:
    """Returns the origins of a float graph, for tensors without pairs."""
    return {value: origin._replace(qparams=None) for value, origin in graph.origins.items()}
