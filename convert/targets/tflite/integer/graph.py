"""Converts a float TFLite graph with QParams to integers.

Each operator with an integer kernel whose tensors have QParams works on integers; the others stay in float,
between DEQUANTIZE and QUANTIZE. If a kernel cannot produce the QParams that a tensor has in the source, a
multiplication by one requantizes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.names import name_of_form
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value
from tmconvert.targets.options import IntegerType, IoType
from tmconvert.targets.tflite.integer.model import FloatFallback, IntegerGraph
from tmconvert.targets.tflite.integer.parts import FLOAT, INT32, Parts
from tmconvert.targets.tflite.integer.prepare import prepared
from tmconvert.targets.tflite.integer.qparams import (
    activation_qparams,
    aligned,
    constant_qparams,
    fixed_qparams,
    is_derived,
    is_zero,
    operands,
    quantization,
    resolved_qparams,
    steps_of,
    summand_qparams,
    weight_qparams,
    widened_for_bias,
)
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.activations import TABLES
from tmconvert.targets.tflite.operators.record import IntegerKernel

_WIDE = {"int8": (-127, 127), "int16": (-32767, 32767)}  # QParams that reach this far need no clamp
_FAR = 100  # a product of that many steps may wrap around, operators/record.py


def in_integers(
    graph: TargetGraph, *, activations: IntegerType = "int8", io_type: IoType = "int8", infers: bool = True
) -> IntegerGraph:
    """Returns a copy of ``graph`` with int8 weights and activations of the type ``activations``.

    ``io_type`` is that of its inputs and outputs: "int8", "uint8", "int16" or "float32". Without ``infers``
    only tensors with QParams in the source, or with fixed QParams of a kernel, are integers.
    """
    return _Integers(graph, activations, io_type, infers).run()


class _Integers(Parts):
    def __init__(self, graph: TargetGraph, kind: IntegerType, io_type: IoType, infers: bool) -> None:
        graph = prepared(graph, kind, infers)
        graph.complete_origins()
        self.source, self.kind, self.io_type = graph, kind, io_type
        self.all_qparams = resolved_qparams(graph, kind, infers=infers)
        self._forget_unused()
        super().__init__(IntegerGraph(replace(graph, inputs=[], outputs=[], operators=[], origins={}), kind))
        self._distinct_names()
        named = [*graph.inputs, *(value for each in graph.operators for value in each.outputs)]
        self.made.all_qparams = {
            value: self.all_qparams[id(value)] for value in named if id(value) in self.all_qparams
        }
        self.whole: dict[tuple[int, QParams], Value] = {}  # integers of a source value, by QParams
        self.plain: dict[int, Value] = {}  # what is in float, or no number

    def run(self) -> IntegerGraph:
        for value in self.source.inputs:
            self._input(value)
        for operator in self.source.operators:
            self._operator(operator)
        for value in self.source.outputs:
            self.made.graph.outputs.append(self._output(value))
        graph = self.made.graph
        for value in graph.values():
            if value not in graph.origins:
                origin = self.source.origins.get(value)
                graph.origins |= {} if origin is None else {value: origin}
        graph.complete_origins()
        return self.made

    def _distinct_names(self) -> None:
        """Reserves the names of the source's tensors; tensors of rewritings get other names."""
        origins, added = self.source.origins, []
        for value in self.source.values():
            if value.is_constant:
                self.names.take([value.name])
                continue
            if value in origins and origins[value].is_inner:
                added.append(value)
                continue
            self.names.take([value.name])
            self.computed_names.add(value.name)
        for value in added:
            value.name = self.names.free(value.name)
            self.computed_names.add(value.name)

    def _stands_for(
        self, made: Value, value: Value, role: Role | None = None, qparams: QParams | None = None
    ) -> Value:
        """Records ``made`` as a form of ``value`` of the float graph; without ``role`` as the tensor
        itself.
        """
        origin = self.source.origins.get(value)
        if origin is not None:
            self.made.graph.origins[made] = origin._replace(
                role=role or origin.role, qparams=qparams, plain=value
            )
        return made

    def _takes_place_of(self, made: Value, other: Value, role: Role) -> None:
        """Records that ``made`` replaces ``other``, which now has ``role``."""
        origins = self.made.graph.origins
        if other in origins:
            origins[made] = origins[other]
            origins[other] = origins[other]._replace(role=role)

    def _forget_unused(self) -> None:
        """Removes inferred QParams from tensors that only float operators use."""
        wanted = {id(value) for value in self.source.outputs}
        for operator in reversed(self.source.operators):
            kernel = spec(operator.type).integer
            kept = [self._is_own(value, operator) or id(value) in wanted for value in operator.outputs]
            # a kernel needs the QParams of all its results, of unused ones too, as of elements beside indices
            has_others = kernel is not None and len(kernel.outputs(len(kept))) < len(kept)
            if not any(kept) and not has_others:
                for value in operator.outputs:
                    self.all_qparams.pop(id(value), None)
            if kernel is not None and self._is_whole(operator, kernel):
                wanted |= {id(value) for value in operator.inputs if value is not None}

    @staticmethod
    def _is_own(value: Value, operator: Operator) -> bool:
        """Whether a result has QParams of the source, or is a lookup table's."""
        return (value.qparams is not None and not value.qparams.inferred) or operator.type in TABLES

    # ---- edges

    def _input(self, value: Value) -> None:
        qparams = self.all_qparams.get(id(value))
        if qparams is None or self.io_type == "float32":
            self._keep(value, value)
            self.made.graph.inputs.append(value)
            return
        given = self._typed(value, qparams, self._edge_type(qparams), value.name)
        self._stands_for(given, value, Role.TENSOR, qparams)
        self.made.graph.inputs.append(given)
        if given.dtype.name != qparams.dtype:
            first = self._typed(
                value, qparams, qparams.dtype, self.names.free(f"{value.name}_{qparams.dtype}")
            )
            self._stands_for(first, value, Role.INTERNAL, qparams)
            self._append("QUANTIZE", [given], [first], value.name)
            given = first
        self.whole[id(value), qparams] = self._clamped(given, qparams, given.name)

    def _output(self, value: Value) -> Value:
        qparams = self.all_qparams.get(id(value))
        if qparams is None or (self.io_type == "float32" and (id(value), qparams) not in self.whole):
            return self._float(value)
        if qparams.inferred and self.io_type != "float32":
            qparams = aligned(qparams, self.kind)
        result = self._quantized_with(value, qparams)
        if self._edge_type(qparams) == qparams.dtype:
            return result
        name, result.name = result.name, self.names.free(f"{result.name}_{qparams.dtype}")
        if self.io_type == "float32":
            final = Value(name, FLOAT, value.shape)
            self._takes_place_of(final, result, Role.INTERNAL)
            self._append("DEQUANTIZE", [result], [final], name)
            return final
        final = self._typed(value, qparams, self.io_type, name)
        self._takes_place_of(final, result, Role.INTERNAL)
        self._append("QUANTIZE", [result], [final], name)
        return final

    def _edge_type(self, qparams: QParams) -> str:
        """Returns the type of an input or output: the requested one, or the only possible one."""
        return self.io_type if self.io_type == "float32" or qparams.dtype == self.kind else qparams.dtype

    def _typed(self, value: Value, qparams: QParams, kind: str, name: str) -> Value:
        """Returns a value of an integer type with QParams, which have the type of the activations."""
        if kind == "uint8":
            qparams = replace(qparams, dtype=kind, zero_point=(qparams.zero_point[0] + 128,))
        return Value(name, np.dtype(kind), value.shape, None, quantization(qparams))

    # ---- operators

    def _operator(self, operator: Operator) -> None:
        kernel = spec(operator.type).integer
        if kernel is None or not self._is_whole(operator, kernel):
            self._in_float(operator, kernel)
        elif kernel.relation == "weights":
            self.made.integers[self._kind(operator, kernel)] += 1
            self._weighted(operator, kernel)
        elif operator.type in TABLES:
            self.made.integers[self._kind(operator, kernel)] += 1
            self._looked_up(operator)
        elif operator.type == "RESHAPE" and _keeps_shape(operator):
            self._renamed(operator)
        else:
            self.made.integers[self._kind(operator, kernel)] += 1
            self._on_shared_qparams(operator, kernel)

    def _kind(self, operator: Operator, kernel: IntegerKernel) -> str:
        """Returns the type in which the kernel computes: the widest of its tensors' types; for products with
        weights and lookup tables that of the result, for comparisons that of the operands.

        What the source does not round is not rounded to eight bits in front of a product, either.
        """
        values = [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
        if kernel.relation == "compared":
            values = []
        if kernel.relation in ("compared", "free", "fixed") and operator.type not in TABLES:
            values += [value for value in operands(operator) if not value.is_constant]
        kinds = [self.all_qparams[id(value)].dtype for value in values if id(value) in self.all_qparams]
        if kernel.relation == "weights":
            given = [self.all_qparams.get(id(value)) for value in operands(operator)]
            kinds += [qparams.dtype for qparams in given if qparams is not None and qparams.inferred]
        return max(kinds, key=("int8", "int16").index, default=self.kind)

    def _is_whole(self, operator: Operator, kernel: IntegerKernel) -> bool:
        """Whether the kernel supports this call in integers."""
        numbers = operands(operator)
        if self._kind(operator, kernel) not in kernel.types or any(value.dtype != FLOAT for value in numbers):
            return False
        if all(value is None or value.is_constant for value in operator.inputs):
            return False
        place = spec(operator.type).weights
        if place is not None:
            others = [operator.inputs[i] for i in (place.weight, place.bias) if i < len(operator.inputs)]
            if any(value is not None and value.data is None for value in others):
                return False
        if kernel.relation != "compared":
            numbers += [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
        if not all(value.is_constant or id(value) in self.all_qparams for value in numbers):
            return False
        # comparisons of two tensors in LiteRT abort at a scale of 1 and more
        is_comparison = kernel.relation == "compared" and len(numbers) > 1
        return not is_comparison or all(
            self._own_qparams(value, self._kind(operator, kernel)).scale[0] < 1 for value in numbers
        )

    def _in_float(self, operator: Operator, kernel: IntegerKernel | None) -> None:
        inputs = [None if value is None else self._float(value) for value in operator.inputs]
        self.made.graph.operators.append(replace(operator, inputs=inputs))
        for value in operator.outputs:
            self._keep(value, value)
        numbers = [value for value in (*operator.inputs, *operator.outputs) if value is not None]
        computed = [value for value in numbers if value.dtype == FLOAT and not value.is_constant]
        # integers of the source have no QParams: an operator that makes floats of them only converts
        if any(value in operator.inputs for value in computed) and operator.type != "QUANTIZE":
            lacking = tuple(value for value in computed if id(value) not in self.all_qparams)
            self.made.fallbacks.append(FloatFallback(operator, lacking))

    def _renamed(self, operator: Operator) -> None:
        """Returns a tensor with another name, of which only the QParams change."""
        value, result = operator.inputs[0], operator.outputs[0]
        assert value is not None
        given, qparams = (
            self._quantized_with(value, self.all_qparams[id(value)]),
            self.all_qparams[id(result)],
        )
        made = self._stands_for(self._requantized(given, qparams, result.name), result, Role.TENSOR, qparams)
        self.whole[id(result), qparams] = self._clamped(made, qparams, result.name)

    def _looked_up(self, operator: Operator) -> None:
        """Emits a lookup table; operands, as unsigned values, are its indices, of two operands row by row."""
        *operands, table = operator.inputs
        result = operator.outputs[0]
        assert table is not None
        qparams = self.all_qparams[id(result)]
        places = [self._as_place(value, result.name) for value in operands if value is not None]
        place = places[0]
        if len(places) == 2:
            row = self._counted("MUL", places[0], np.array(256, INT32), f"{result.name}_row")
            place = Value(self.names.free(f"{result.name}_places"), INT32, result.shape)
            self._append("ADD", [row, places[1]], [place], place.name)
        made = Value(result.name, np.dtype(qparams.dtype), result.shape, None, quantization(qparams))
        self._stands_for(made, result, Role.TENSOR, qparams)
        entries = self._constant(table, qparams)
        gather: dict[str, Attribute] = {"axis": 0}
        self.made.graph.operators.append(
            replace(operator, type="GATHER", inputs=[entries, place], outputs=[made], attributes=gather)
        )
        self.whole[id(result), qparams] = made

    def _as_place(self, value: Value, name: str) -> Value:
        """Converts a quantized tensor to indices, with the lowest entry of the table at 0."""
        qparams = self.all_qparams[id(value)]
        given = self._quantized_with(value, qparams)
        kind = given.dtype.name
        counted = Value(self.names.free(f"{name}_steps"), INT32, value.shape)
        self._append("CAST", [given], [counted], counted.name)
        options: dict[str, Attribute] = {"in_data_type": kind.upper(), "out_data_type": "INT32"}
        self.made.graph.operators[-1].attributes.update(options)
        first = steps_of(qparams).start
        if not first:
            return counted
        return self._counted("ADD", counted, np.array(-first, INT32), f"{name}_places")

    def _on_shared_qparams(self, operator: Operator, kernel: IntegerKernel) -> None:
        places = spec(operator.type).data_of(len(operator.inputs))
        results = [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
        inputs: list[Value | None] = [
            None if value is None else self._plain(value) for value in operator.inputs
        ]
        kind = self._kind(operator, kernel)
        qparams = self._common_qparams(operator, kernel, places)
        for i in places:
            value = operator.inputs[i]
            if value is None:
                continue
            own = qparams or self._own_qparams(value, kind)
            if kernel.aligns_summands:
                own = summand_qparams(value, own, self.all_qparams[id(results[0])])
            inputs[i] = self._quantized_with(value, own)
        if kernel.relation == "fixed":
            qparams = fixed_qparams(operator.type, kind)
        self._compute(operator, kernel, inputs, [] if kernel.relation == "compared" else results, qparams)

    def _common_qparams(
        self, operator: Operator, kernel: IntegerKernel, places: Sequence[int]
    ) -> QParams | None:
        """Returns the common QParams that a kernel requires: those of the operand, or, of several, of the
        result.

        Numbers in int16 are compared as they are; the QParams of the widest range, which are symmetric, hold
        them all.
        """
        numbers = [operator.inputs[i] for i in places]
        if kernel.relation == "compared" and self._kind(operator, kernel) == "int16":
            wide = [value for value in numbers if value is not None and not is_zero(value)]
            all_qparams = [self._own_qparams(value, "int16") for value in wide]
            return max(all_qparams, key=lambda qparams: qparams.scale)
        result = None if kernel.relation == "compared" else self.all_qparams[id(operator.outputs[0])]
        if result is not None and kernel.is_within and result.inferred:
            return result
        if kernel.relation != "same":
            return None
        computed = [value for value in numbers if value is not None and not value.is_constant]
        if len(computed) == 1 and len(numbers) == 1:
            qparams, kind = self.all_qparams[id(computed[0])], self.all_qparams[id(operator.outputs[0])].dtype
            is_wider = (kind, qparams.dtype) == ("int16", "int8")
            return qparams if qparams.dtype in kernel.types and not is_wider else aligned(qparams, kind)
        return self.all_qparams[id(operator.outputs[0])]

    def _weighted(self, operator: Operator, kernel: IntegerKernel) -> None:
        place = spec(operator.type).weights
        assert place is not None
        inputs = list(operator.inputs)
        x, weight = inputs[place.x], inputs[place.weight]
        assert x is not None and weight is not None and weight.data is not None
        qparams = self._own_qparams(x, self._kind(operator, kernel))
        inputs[place.x] = self._quantized_with(x, qparams)
        bias = inputs[place.bias] if place.bias < len(inputs) else None
        own = weight_qparams(weight, place.axis)
        if is_derived(weight, own) and weight.name not in self.made.derived:
            self.made.derived.append(weight.name)
        terms = weight.data.size // weight.data.shape[place.axis]
        result = self.all_qparams.get(id(operator.outputs[0]))
        scales = widened_for_bias(own, qparams, None if bias is None else bias.data, terms, result)
        if scales != own and weight.name not in self.made.widened:
            self.made.widened.append(weight.name)
        inputs[place.weight] = self._weight(weight, scales)
        if bias is not None:
            inputs[place.bias] = self._bias(bias, qparams, scales)
        self._compute(operator, kernel, inputs, operator.outputs, None)

    def _compute(
        self,
        operator: Operator,
        kernel: IntegerKernel,
        inputs: Sequence[Value | None],
        results: Sequence[Value],
        fixed: QParams | None,
    ) -> None:
        """Appends the operator; results get the kernel's QParams, then their own."""
        outputs, after = [], []
        kind = self._kind(operator, kernel)
        for value in operator.outputs:
            if not any(value is result for result in results):
                self._keep(value, value)
                outputs.append(value)
                continue
            qparams = self.all_qparams[id(value)]
            given = fixed or aligned(qparams, kind)
            made = Value(value.name, np.dtype(given.dtype), value.shape, None, quantization(given))
            outputs.append(self._stands_for(made, value, Role.TENSOR, given))
            after.append((value, made, qparams))
        self.made.graph.operators.append(replace(operator, inputs=list(inputs), outputs=outputs))
        for value, made, qparams in after:
            if not _is_equal(fixed or aligned(qparams, kind), qparams):
                made.name = self._name(value, Role.COMPUTED)
                self._stands_for(made, value, Role.COMPUTED, fixed or aligned(qparams, kind))
                made = self._stands_for(
                    self._requantized(made, qparams, value.name), value, Role.TENSOR, qparams
                )
            self.whole[id(value), qparams] = self._clamped(made, qparams, value.name)

    # ---- tensors in one form and the other

    def _quantized_with(self, value: Value, qparams: QParams) -> Value:
        """Returns ``value`` quantized with these QParams."""
        if value.is_constant:
            return self._constant(value, qparams)
        key = id(value), qparams
        if key in self.whole:
            return self.whole[key]
        own = self.all_qparams[id(value)]
        is_other = own.dtype == qparams.dtype and not _is_equal(own, qparams)
        if is_other and not own.inferred and (id(value), own) not in self.whole:
            self._quantized_with(value, own)  # a tensor in float is rounded as in the source first
        if (id(value), own) in self.whole:
            if _is_equal(own, qparams):
                return self.whole[id(value), own]
            # what int8 operators get of a tensor in int16 is what it is to them
            role = Role.QUANTIZED if (own.dtype, qparams.dtype) == ("int16", "int8") else Role.REQUANTIZED
            name = self._name(value, role)
            made = self._requantized(self.whole[id(value), own], qparams, name)
        else:
            role = Role.REQUANTIZED if is_other else Role.QUANTIZED
            name = self._name(value, role)
            made = Value(name, np.dtype(qparams.dtype), value.shape, None, quantization(qparams))
            self._append("QUANTIZE", [self.plain[id(value)]], [made], made.name)
        self._stands_for(made, value, role, qparams)
        self.whole[key] = self._clamped(made, qparams, name)
        return self.whole[key]

    def _own_qparams(self, value: Value, kind: str) -> QParams:
        """Returns the QParams of an operand, for a kernel in ``kind``."""
        if not value.is_constant:
            return aligned(self.all_qparams[id(value)], kind)
        assert value.data is not None
        qparams = None if value.qparams is None else activation_qparams(value.qparams, kind)
        return qparams or constant_qparams(value.data, kind)

    def _float(self, value: Value) -> Value:
        """Returns ``value`` in float, dequantized if needed."""
        if value.is_constant or id(value) in self.plain:
            return self.plain.get(id(value), value)
        whole = self.whole[id(value), self.all_qparams[id(value)]]
        made = Value(self._name(value, Role.DEQUANTIZED), FLOAT, value.shape)
        self._stands_for(made, value, Role.DEQUANTIZED)
        self._append("DEQUANTIZE", [whole], [made], made.name)
        self.plain[id(value)] = made
        return made

    def _plain(self, value: Value) -> Value:
        """Returns an operand that is not quantized data."""
        return self.plain.get(id(value), value)

    def _keep(self, value: Value, made: Value) -> None:
        self.plain[id(value)] = self._stands_for(made, value)

    def _name(self, value: Value, role: Role) -> str:
        return self.names.free(name_of_form(value.name, role))

    def _requantized(self, value: Value, qparams: QParams, name: str) -> Value:
        """Requantizes by a product with one, rounded once, since XNNPACK's QUANTIZE of int8 also rounds the
        ratio.

        Where nearly all is beyond the range, the product would wrap around.
        """
        made = Value(name, np.dtype(qparams.dtype), value.shape, None, quantization(qparams))
        assert value.quantization is not None
        ratio = float(value.quantization.scale[0]) / qparams.scale[0]
        if value.dtype == made.dtype == np.int8 and ratio < _FAR:
            self._append("MUL", [value, self._one(ratio)], [made], name)
        else:
            self._append("QUANTIZE", [value], [made], name)
        self.made.requantized += 1
        return made

    def _clamped(self, value: Value, qparams: QParams, name: str) -> Value:
        """Clamps ``value`` to a range that does not use all of its type."""
        low, high = (qparams.quant_min, qparams.quant_max) if qparams.inferred else _WIDE[qparams.dtype]
        if qparams.quant_min > low:
            value = self._limited("MAXIMUM", value, qparams, qparams.quant_min, name)
        if qparams.quant_max < high:
            value = self._limited("MINIMUM", value, qparams, qparams.quant_max, name)
        return value

    def _limited(self, type: str, value: Value, qparams: QParams, limit: int, name: str) -> Value:
        steps = np.array(limit, value.dtype)
        bound = Value(self.names.free(f"{name}_limit"), value.dtype, (), steps, value.quantization)
        number = np.array((limit - qparams.zero_point[0]) * qparams.scale[0], FLOAT)
        self.made.stored.append((bound, Value(bound.name, FLOAT, (), number), qparams))
        made = Value(name, value.dtype, value.shape, None, value.quantization)
        value.name = self.names.free(f"{name}_unlimited")
        self._takes_place_of(made, value, Role.UNCLAMPED)
        self._append(type, [value, bound], [made], name)
        return made


def _keeps_shape(operator: Operator) -> bool:
    x = operator.inputs[0]
    return x is not None and x.shape == operator.outputs[0].shape


def _is_equal(one: QParams, other: QParams) -> bool:
    return (one.dtype, one.scale, one.zero_point) == (other.dtype, other.scale, other.zero_point)
