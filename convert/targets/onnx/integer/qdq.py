"""ONNX quantization by QuantizeLinear/DequantizeLinear pairs at the positions that ONNX Runtime fuses.

Every tensor to which the source gives QParams is quantized with them after the operator that makes it;
weights are integers before a DequantizeLinear, biases 32-bit integers with the scale of the products.
Operators that only select or move elements, and ReLU, are between two pairs with the same QParams, so that
the operator before them is computed on integers, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.types import QParams
from tmconvert.lowering.names import Names, name_of_form
from tmconvert.lowering.origins import Origin, Role
from tmconvert.lowering.redundant_clamps import bound_by_operand, without_redundant_clamps
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.integer.types import (
    SINCE,
    activation_qparams,
    dtype_of,
    lacking_type,
    limits,
    saturates,
    stored_type,
    unsigned,
)
from tmconvert.targets.onnx.operators import spec

_PER_CHANNEL_SINCE = 13
_BIAS = (-(2**31), 2**31 - 1)


@dataclass
class QdqGraph:
    """``graph`` with the pairs, and the QParams of each quantized tensor, by its name.

    ``stored`` has the DequantizeLinear of each constant, the constant and its QParams, ``rounded`` the
    DequantizeLinear of each other tensor, and the tensor. ``saturating`` are operators with int8 weights
    whose sums saturate on some processors.
    """

    graph: TargetGraph
    all_qparams: dict[str, QParams] = field(default_factory=dict)
    weights: int = 0
    stored: list[tuple[Operator, Value, QParams]] = field(default_factory=list)
    rounded: list[tuple[Operator, Value]] = field(default_factory=list)
    saturating: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        found = [f"{len(self.all_qparams)} tensors and {self.weights} weights are quantized"]
        if self.saturating:
            some = "1 operator" if len(self.saturating) == 1 else f"{len(self.saturating)} operators"
            found.append(f"int8 weights of {some} may saturate {PROCESSORS}: {REMEDY}")
        return found


# where int8 weights are at risk, whichever processor wrote the file, and what helps
PROCESSORS = "in integer kernels of x86 processors without VNNI (AMD Zen 1 to 3, Intel before Ice Lake)"
REMEDY = "--weight-type uint8 is exact on every processor, --reduce-range quantizes weights to 7 bits"


def with_qdq(graph: TargetGraph, activations: str = "uint8", weight_type: str = "uint8") -> QdqGraph:
    """Returns a copy of ``graph`` with pairs, and activations as "uint8", "int8", "uint16" or "int16".

    int8 and uint8 represent the same real values, with shifted zero points. ONNX Runtime has kernels for
    uint8 on every processor; other runtimes require int8. Tensors of 16 bits in the source stay in 16 bits,
    with the requested sign. Weights whose int8 sums might saturate are uint8, unless ``weight_type`` is
    "int8". Raises Refusal for QParams that the opset of ``graph`` cannot express.
    """
    assert isinstance(graph.version, int)
    if graph.version < SINCE:
        raise Refusal(f"ONNX supports quantization from opset {SINCE} on", f"use --opset {SINCE} or later")
    return _Pairs(
        without_redundant_clamps(graph, lambda each: bound_by_operand(each, "Min")),
        activations,
        weight_type,
    ).run()


class _Pairs:
    def __init__(self, graph: TargetGraph, activations: str, weight_type: str) -> None:
        self.source, self.activations, self.weight_type = graph, activations, weight_type
        self.made = QdqGraph(replace(graph, operators=[], origins=_without_qparams(graph)))
        self.names = Names(value.name for each in graph.nested() for value in _all(each))
        self.constant_names: set[str] = set()
        self.rounded: dict[int, Value] = {}  # what takes the place of a value, by its id
        self.constants: dict[tuple[int, QParams | None, str], Value] = {}
        self.all_qparams = _resolved_qparams(graph)

    def run(self) -> QdqGraph:
        graph = self.made.graph
        for value in graph.inputs:
            self._round(value, is_input=True)
        for operator in self.source.operators:
            inputs = self._operands(operator)
            outputs = [self._raw(value) for value in operator.outputs]
            graph.operators.append(replace(operator, inputs=inputs, outputs=outputs))
            for value, raw in zip(operator.outputs, outputs, strict=True):
                if raw is not value:
                    self._round(value, raw)
        graph.outputs = [self.rounded.get(id(value), value) for value in self.source.outputs]
        graph.complete_origins()
        return self.made

    @property
    def _opset(self) -> int:
        assert isinstance(self.source.version, int)
        return self.source.version

    def _operands(self, operator: Operator) -> list[Value | None]:
        inputs: list[Value | None] = [
            self._constant_operand(operator, place)
            if value is not None and value.is_constant
            else value and self.rounded.get(id(value), value)
            for place, value in enumerate(operator.inputs)
        ]
        weights = spec(operator.type).weights
        if weights is not None and weights.bias is not None:
            self._round_bias(operator, inputs, weights.bias, weights.axis)
            self._keep_float(operator, inputs)
        return inputs

    def _keep_float(self, operator: Operator, inputs: list[Value | None]) -> None:
        """Inserts a sum of one operand before an operator whose weight the source keeps in float.

        Between pairs ONNX Runtime would round that to int8 on a scale of its own, and saturate.
        """
        x, weight = operator.inputs[:2]
        key = id(weight), None, "float32"
        is_float = key in self.constants and inputs[1] is self.constants[key]
        if (
            x is None
            or not is_float
            or id(x) not in self.all_qparams
            or id(operator.outputs[0]) not in self.all_qparams
        ):
            return
        given = inputs[0]
        assert given is not None
        made = Value(self.names.free(f"{operator.outputs[0].name}_operand"), given.dtype, given.shape)
        self._append("Sum", [given], made)
        inputs[0] = made

    def _constant_operand(self, operator: Operator, place: int) -> Value:
        value = operator.inputs[place]
        assert value is not None
        qparams = value.qparams
        if qparams is None or value.dtype != np.float32 or qparams.dtype == "int32":
            return self._plain(value)
        is_factor = spec(operator.type).weights is not None and place < 2
        dtype = stored_type(qparams, self._opset, is_weight=is_factor and place == 1)
        if dtype is None:
            raise lacking_type(value.name, qparams, self._opset)
        if is_factor and dtype == "int8" and self._saturates(value, qparams, operator.inputs[1 - place]):
            if self.weight_type == "uint8":
                return self._constant(value, unsigned(qparams), "uint8")
            self.made.saturating.append(operator.name)
        return self._constant(value, qparams, dtype)

    def _saturates(self, value: Value, qparams: QParams, other: Value | None) -> bool:
        """Whether kernels may overflow for sums of products of the constant, as int8, and ``other``."""
        assert value.data is not None
        if other is None or id(other) not in self.all_qparams:
            # kernels may compute integers all the same, of the operands of what makes it
            return self.activations.endswith("8") and saturates(_Stored(value.data, qparams, "int8").array())
        found = self._in_file(other)
        return saturates(_Stored(value.data, qparams, "int8").array(), found)

    def _plain(self, value: Value) -> Value:
        """Returns a float constant, renamed where other operators use its integers under its own name."""
        key = id(value), None, value.dtype.name
        if key not in self.constants:
            name = self._unused(value.name)
            self.constants[key] = value if name == value.name else replace(value, name=name)
        return self.constants[key]

    def _unused(self, name: str) -> str:
        """Returns an unused name for a constant, of which other forms may have taken its own."""
        made = self.names.free(f"{name}_again") if name in self.constant_names else name
        self.constant_names.add(made)
        return made

    def _round_bias(self, operator: Operator, inputs: list[Value | None], bias_at: int, axis: int) -> None:
        """Returns the bias as int32, where input and weights are integers."""
        x, weight = operator.inputs[:2]
        bias = operator.inputs[bias_at] if bias_at < len(operator.inputs) else None
        if x is None or weight is None or bias is None or bias.data is None or id(x) not in self.all_qparams:
            return
        qparams = weight.qparams
        if (
            qparams is None
            or not weight.is_constant
            or any(qparams.zero_point)
            or qparams.channel_axis not in (None, axis)
        ):
            return
        scales = np.float64(self._in_file(x).scale[0]) * np.array(qparams.scale)
        if not np.all(np.abs(bias.data) < _BIAS[1] * scales):
            return  # 32 bits do not reach as far
        scales = tuple(map(float, scales.astype(np.float32)))
        products = QParams("int32", scales, (0,) * len(scales), *_BIAS, None if len(scales) == 1 else 0)
        inputs[bias_at] = self._constant(bias, products, "int32")

    # ---- tensors

    def _raw(self, value: Value) -> Value:
        """Returns the operator's own output: another tensor where ``value`` is quantized."""
        if id(value) not in self.all_qparams:
            return value
        made = replace(value, name=self.names.free(f"{value.name}_unrounded"), qparams=None)
        return self._stands_for(made, value, Role.COMPUTED)

    def _round(self, value: Value, raw: Value | None = None, *, is_input: bool = False) -> None:
        if id(value) not in self.all_qparams:
            return
        qparams = self._in_file(value)
        name, given = qparams.dtype, self._clipped(raw or value, qparams)
        parameters = self._parameters(value.name, qparams, name)
        whole = Value(self._name(value, Role.QUANTIZED), np.dtype(name), value.shape)
        self._stands_for(whole, value, Role.QUANTIZED, qparams)
        self._append("QuantizeLinear", [given, *parameters], whole)
        role = Role.DEQUANTIZED if is_input else Role.TENSOR
        result = replace(value, name=self._name(value, role) if is_input else value.name)
        self._stands_for(result, value, role, qparams)
        pair = self._append("DequantizeLinear", [whole, *parameters], result)
        self.made.rounded.append((pair, value))
        self.rounded[id(value)] = result
        self.made.all_qparams[value.name] = qparams

    def _name(self, value: Value, role: Role) -> str:
        return self.names.free(name_of_form(value.name, role))

    def _stands_for(self, made: Value, value: Value, role: Role, qparams: QParams | None = None) -> Value:
        """Records ``made`` as a form of ``value`` of the float graph."""
        origin = self.source.origins.get(value)
        if origin is not None:
            self.made.graph.origins[made] = origin._replace(role=role, qparams=qparams, plain=value)
        return made

    def _in_file(self, value: Value) -> QParams:
        return activation_qparams(value.name, self.all_qparams[id(value)], self.activations, self._opset)

    def _clipped(self, value: Value, qparams: QParams) -> Value:
        """Clips ``value`` to a range that does not use all of its type."""
        ends = limits(qparams)
        if ends is None:
            return value
        made = Value(self.names.free(f"{value.name}_clipped"), value.dtype, value.shape)
        if self._opset < spec("Clip").inputs_since:
            self._append("Clip", [value], made, {"min": ends[0], "max": ends[1]})
            return made
        numbers = [np.array(end, np.float32) for end in ends]
        bounds = [Value(self.names.free(f"{made.name}_limit"), value.dtype, (), number) for number in numbers]
        self._append("Clip", [value, *bounds], made)
        return made

    def _constant(self, value: Value, qparams: QParams, dtype: str) -> Value:
        """Returns a constant as integers with a DequantizeLinear, created once."""
        key = id(value), qparams, dtype
        if key in self.constants:
            return self.constants[key]
        assert value.data is not None
        whole = _Stored(value.data, qparams, dtype).array()
        stored = Value(self._name(value, Role.QUANTIZED), whole.dtype, value.shape, whole)
        self._stands_for(stored, value, Role.CONSTANT, qparams)
        parameters = self._parameters(value.name, qparams, dtype)
        result = replace(value, stored=None, name=self._unused(value.name))
        self._stands_for(result, value, Role.CONSTANT, qparams)
        attributes = {} if qparams.channel_axis is None else {"axis": qparams.channel_axis}
        pair = self._append("DequantizeLinear", [stored, *parameters], result, attributes)
        self.made.stored.append((pair, value, qparams))
        self.constants[key] = result
        self.made.weights += qparams.dtype != "int32"
        return result

    def _parameters(self, name: str, qparams: QParams, dtype: str) -> list[Value]:
        """Returns scale and zero point; vectors along an axis from opset 13 on."""
        if qparams.channel_axis is not None and self._opset < _PER_CHANNEL_SINCE:
            raise Refusal(
                f"{name} has per-channel scales, which ONNX supports from opset {_PER_CHANNEL_SINCE} on",
                f"use --opset {_PER_CHANNEL_SINCE} or later",
            )
        shape = () if qparams.channel_axis is None else (len(qparams.scale),)
        scale = np.array(qparams.scale, np.float32).reshape(shape)
        zero = np.array(qparams.zero_point).astype(dtype_of(dtype)).reshape(shape)
        return [
            Value(self.names.free(f"{name}_scale"), scale.dtype, shape, scale),
            Value(self.names.free(f"{name}_zero_point"), zero.dtype, shape, zero),
        ]

    def _append(
        self,
        type: str,
        inputs: Sequence[Value],
        output: Value,
        attributes: Mapping[str, int | float] | None = None,
    ) -> Operator:
        name = f"/{output.name}/{type}"
        made = Operator(type, list(inputs), [output], dict(attributes or {}), name)
        self.made.graph.operators.append(made)
        return made


@dataclass(frozen=True)
class _Stored:
    """A quantized constant."""

    data: np.ndarray
    qparams: QParams
    dtype: str

    def array(self) -> np.ndarray:
        if self.dtype != "int32":
            return quantize(self.data, self.qparams).astype(dtype_of(self.dtype))
        steps = self.data.astype(np.float64) / np.array(self.qparams.scale)
        steps = np.trunc(steps + np.copysign(0.5, steps))
        return np.clip(steps, *_BIAS).astype(np.int32)


def _without_qparams(graph: TargetGraph) -> dict[Value, Origin]:
    """Returns the origins of a float graph, for tensors without pairs."""
    return {value: origin._replace(qparams=None) for value, origin in graph.origins.items()}


def _resolved_qparams(graph: TargetGraph) -> dict[int, QParams]:
    """Returns the QParams of each input and result that is quantized, by id."""
    all_qparams: dict[int, QParams] = {}
    uses: dict[int, int] = {}
    for operator in graph.operators:
        for value in operator.inputs:
            if value is not None:
                uses[id(value)] = uses.get(id(value), 0) + 1
    for value in graph.inputs:
        if value.qparams is not None and value.dtype == np.float32:
            all_qparams[id(value)] = value.qparams
    outputs = {id(value) for value in graph.outputs}
    for operator in graph.operators:
        x = operator.inputs[0] if operator.inputs else None
        for value in operator.outputs:
            if value.qparams is not None and not value.qparams.inferred and value.dtype == np.float32:
                all_qparams[id(value)] = value.qparams
            elif spec(operator.type).is_between_pairs and x is not None and id(x) in all_qparams:
                all_qparams[id(value)] = all_qparams[id(x)]
        if spec(operator.type).clamps and x is not None and not x.is_constant and uses[id(x)] == 1:
            qparams = all_qparams.get(id(operator.outputs[0]))
            if qparams is not None and id(x) not in outputs:
                all_qparams.setdefault(id(x), qparams)
    return all_qparams


def _all(graph: TargetGraph) -> list[Value]:
    values = [*graph.inputs, *graph.outputs]
    for operator in graph.operators:
        values += [value for value in operator.inputs if value is not None]
        values += operator.outputs
    return values
