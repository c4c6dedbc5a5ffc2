"""Writes the integer graph: the stage ``encode``.

Each operator with an integer kernel whose tensors have QParams works on integers; the others stay in float,
between DEQUANTIZE and QUANTIZE. If a kernel cannot produce the QParams that a tensor has in the source, a
multiplication by one requantizes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.options import IntegerType, IoType
from tmconvert.targets.tflite.integer.constants import FLOAT, INT32
from tmconvert.targets.tflite.integer.kernel_choice import KernelChoice
from tmconvert.targets.tflite.integer.model import FloatFallback, IntegerGraph
from tmconvert.targets.tflite.integer.qparams import (
    align_qparams,
    fixed_qparams,
    is_equal,
    quantization,
    steps_of,
    summand_qparams,
)
from tmconvert.targets.tflite.integer.tensors import Tensors
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.activations import TABLES
from tmconvert.targets.tflite.operators.record import IntegerKernel


def encode(
    graph: TargetGraph, all_qparams: dict[Value, QParams], activations: IntegerType, io_type: IoType
) -> IntegerGraph:
    """Returns a copy of ``graph`` on integers with these QParams.

    ``io_type`` is the type of inputs and outputs: "int8", "uint8", "int16" or "float32".
    """
    graph.complete_origins()
    empty = replace(graph, inputs=[], outputs=[], operators=[], origins={})
    made = IntegerGraph(empty, activations, all_qparams=all_qparams)
    tensors = Tensors(graph, made)
    encoder = _Encoder(tensors)
    made.graph.inputs = [tensors.add_input(value, io_type) for value in graph.inputs]
    for operator in graph.operators:
        encoder.add(operator)
    made.graph.outputs = [tensors.add_output(value, io_type) for value in graph.outputs]
    for value in made.graph.values():
        if value not in made.graph.origins and value in graph.origins:
            made.graph.origins[value] = graph.origins[value]
    made.graph.complete_origins()
    return made


class _Encoder:
    """Appends the operators of the float graph, each in an integer kernel or in float."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors, self.made, self.all_qparams = tensors, tensors.made, tensors.all_qparams
        self.choice = KernelChoice(self.all_qparams, self.made.activations)

    def add(self, operator: Operator) -> None:
        kernel, x = self.choice.kernel_of(operator), operator.inputs[0] if operator.inputs else None
        if x is not None and spec(operator.type).reads_sizes and not x.is_constant and x in self.all_qparams:
            self._read_sizes(operator, x)
        elif kernel is None:
            self._keep_in_float(operator)
        elif operator.type == "RESHAPE" and x is not None and x.shape == operator.outputs[0].shape:
            self._rename(operator, x)
        else:
            kind = self.choice.type_of(operator, kernel)
            self.made.integers[kind] += 1
            if kernel.relation == "weights":
                self._multiply_weights(operator, kind)
            elif operator.type in TABLES:
                self._look_up(operator)
            else:
                self._compute_on_operands(operator, kernel, kind)

    def _read_sizes(self, operator: Operator, x: Value) -> None:
        """Emits an operator that reads no elements, on whichever form of its operand there is."""
        form = self.tensors.integers.get((x, self.all_qparams[x])) or self.tensors.dequantize(x)
        self.made.graph.operators.append(replace(operator, inputs=[form]))
        self.tensors.keep_float(operator.outputs[0])

    def _keep_in_float(self, operator: Operator) -> None:
        inputs = [None if value is None else self.tensors.dequantize(value) for value in operator.inputs]
        self.made.graph.operators.append(replace(operator, inputs=inputs))
        for value in operator.outputs:
            self.tensors.keep_float(value)
        values = [value for value in (*operator.inputs, *operator.outputs) if value is not None]
        computed = [value for value in values if value.dtype == FLOAT and not value.is_constant]
        # integers of the source have no QParams: an operator that makes floats of them only converts
        if any(value in operator.inputs for value in computed) and operator.type != "QUANTIZE":
            lacking = tuple(value for value in computed if value not in self.all_qparams)
            self.made.fallbacks.append(FloatFallback(operator, lacking))

    def _rename(self, operator: Operator, value: Value) -> None:
        """Gives a tensor another name; of its elements only the QParams change."""
        result = operator.outputs[0]
        qparams = self.all_qparams[result]
        given = self.tensors.quantize(value, self.all_qparams[value])
        made = self.tensors.requantize(given, qparams, result.name)
        self.tensors.set_origin(made, result, Role.TENSOR, qparams)
        self.tensors.keep_integers(result, made, qparams)

    def _look_up(self, operator: Operator) -> None:
        """Emits a lookup table; operands, as unsigned values, are its indices, of two operands row by row."""
        *operands, table = operator.inputs
        result, tensors = operator.outputs[0], self.tensors
        assert table is not None
        qparams = self.all_qparams[result]
        indices = [self._index(value, result.name) for value in operands if value is not None]
        index = indices[0]
        if len(indices) == 2:
            row = tensors.compute_with("MUL", index, 256, f"{result.name}_row")
            index = Value(tensors.names.free(f"{result.name}_places"), INT32, result.shape)
            tensors.append("ADD", [row, indices[1]], [index], index.name)
        made = Value(result.name, np.dtype(qparams.dtype), result.shape, None, quantization(qparams))
        tensors.set_origin(made, result, Role.TENSOR, qparams)
        entries = tensors.constant(table, qparams)
        self.made.table_entries = max(self.made.table_entries, table.shape[0])
        self.made.graph.operators.append(
            replace(operator, type="GATHER", inputs=[entries, index], outputs=[made], attributes={"axis": 0})
        )
        tensors.integers[result, qparams] = made

    def _index(self, value: Value, name: str) -> Value:
        """Converts a quantized tensor to indices, with the lowest entry of the table at 0."""
        qparams, tensors = self.all_qparams[value], self.tensors
        given = tensors.quantize(value, qparams)
        steps = Value(tensors.names.free(f"{name}_steps"), INT32, value.shape)
        types = {"in_data_type": given.dtype.name.upper(), "out_data_type": "INT32"}
        tensors.append("CAST", [given], [steps], steps.name, types)
        first = steps_of(qparams).start
        return tensors.compute_with("ADD", steps, -first, f"{name}_places") if first else steps

    def _compute_on_operands(self, operator: Operator, kernel: IntegerKernel, kind: IntegerType) -> None:
        """Emits an operator whose operands and results have the QParams that its kernel requires."""
        positions = spec(operator.type).data_of(len(operator.inputs))
        results = [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
        inputs = [
            None if value is None else self.tensors.floats.get(value, value) for value in operator.inputs
        ]
        qparams = self.choice.common_qparams(operator, kernel, positions)
        for i in positions:
            value = operator.inputs[i]
            if value is None:
                continue
            own = qparams or self.choice.operand_qparams(value, kind)
            if kernel.aligns_summands:
                own = summand_qparams(value, own, self.all_qparams[results[0]])
            inputs[i] = self.tensors.quantize(value, own)
        if kernel.relation == "fixed":
            qparams = fixed_qparams(operator.type, kind)
        if kernel.relation == "compared":
            results = []
        self._append(operator, kind, inputs, results, qparams)

    def _multiply_weights(self, operator: Operator, kind: IntegerType) -> None:
        """Emits a product with weights, whose bias has the scale of the products."""
        positions = spec(operator.type).weights
        assert positions is not None
        inputs = list(operator.inputs)
        x, weight = inputs[positions.x], inputs[positions.weight]
        assert x is not None and weight is not None
        qparams = self.choice.operand_qparams(x, kind)
        inputs[positions.x] = self.tensors.quantize(x, qparams)
        bias = inputs[positions.bias] if positions.bias < len(inputs) else None
        inputs[positions.weight], bias = self.tensors.product_constants(
            weight, bias, positions.axis, qparams, self.all_qparams.get(operator.outputs[0])
        )
        if bias is not None:
            inputs[positions.bias] = bias
        self._append(operator, kind, inputs, operator.outputs, None)

    def _append(
        self,
        operator: Operator,
        kind: str,
        inputs: Sequence[Value | None],
        results: Sequence[Value],
        common: QParams | None,
    ) -> None:
        """Appends the operator; ``results`` get the ``common`` QParams, or theirs in the type of the kernel,
        and are requantized where their own are others.
        """
        outputs, after = [], []
        for value in operator.outputs:
            if value not in results:
                self.tensors.keep_float(value)
                outputs.append(value)
                continue
            given = common or align_qparams(self.all_qparams[value], kind)
            made = Value(value.name, np.dtype(given.dtype), value.shape, None, quantization(given))
            outputs.append(self.tensors.set_origin(made, value, Role.TENSOR, given))
            after.append((value, made, given))
        self.made.graph.operators.append(replace(operator, inputs=list(inputs), outputs=outputs))
        for value, made, given in after:
            qparams = self.all_qparams[value]
            if not is_equal(given, qparams):
                made.name = self.tensors.name(value, Role.COMPUTED)
                self.tensors.set_origin(made, value, Role.COMPUTED, given)
                made = self.tensors.requantize(made, qparams, value.name)
                self.tensors.set_origin(made, value, Role.TENSOR, qparams)
            self.tensors.keep_integers(value, made, qparams)
