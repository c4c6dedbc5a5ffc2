"""ONNX: computes in float16 or bfloat16 instead of float32, where the standard allows it.

What a float input or a large weight goes into is narrow. Positions, masks and other numbers that are computed
from integers, sizes and small constants stay in float32, in which positions above 2048 are exact; they are
cast where they meet narrow operands. An operator that the opset does not define for the type computes in
float32, between casts, and so do the subgraphs of control flow, and what rules keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from tmconvert.errors import UsageError
from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.lowering.type_rules import Rules, TypeRules
from tmconvert.passes.rewriting import PassRecord
from tmconvert.targets.onnx.operators import spec
from tmconvert.targets.onnx.passes.matmul_n_bits import ROWS
from tmconvert.targets.onnx.passes.matmul_n_bits import TYPE as PRODUCT

_WIDE = np.dtype(np.float32)
_TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
_CODES = {"float32": 1, "float16": 10, "bfloat16": 16}
_OLDEST = {"float16": 7, "bfloat16": 13}
_LARGE = 1024  # elements of a weight
_HALF_SCALES_SINCE = 19  # of DequantizeLinear
_LEAST = 1e-7  # of float16: a smaller epsilon would become 0


def narrow_floats(
    graph: TargetGraph, to: str, rules: Rules = (), *, float_io: bool = False, checks_rules: bool = True
) -> PassRecord:
    """Changes float32 to ``to`` in place, but for what ``rules`` keep, and with ``float_io`` for inputs and
    outputs.

    Raises UsageError TM6002 at an opset without that type, TM6032 for a rule that matches nothing.
    """
    opset = int(graph.version)
    if opset < _OLDEST[to]:
        help = f"use --opset {_OLDEST[to]} or later"
        raise UsageError("TM6002", f"ONNX has no {to} at opset {opset}", notes=[("help", help)])
    record = PassRecord("narrow_floats")
    chosen = TypeRules(rules, graph)
    if checks_rules:
        chosen.check()
    _Narrowing(graph, to, opset, record, chosen).run(float_io=float_io)
    return record


class _Narrowing:
    def __init__(self, graph: TargetGraph, to: str, opset: int, record: PassRecord, rules: TypeRules) -> None:
        self.graph, self.opset, self.record, self.rules = graph, opset, record, rules
        self.name, self.dtype = to, _TYPES[to]
        self.names = Names(value.name for each in graph.nested() for value in each.values())
        self.narrow: set[int] = set()
        self.constants: dict[int, tuple[Value, Value]] = {}
        self.casts: dict[tuple[int, str], Value] = {}
        self.made: list[Operator] = []
        self.kept: dict[str, int] = {}
        self.wide: set[int] = set()  # results of operators that rules keep in float32
        self.outputs: dict[int, Value] = {}
        self.chosen = 0  # operators that rules keep in float32

    def run(self, *, float_io: bool) -> None:
        graph = self.graph
        if float_io:
            graph.inputs = [self._cast_input(value) for value in graph.inputs]
        else:
            for value in graph.inputs:
                self._make_narrow(value)
        operators, graph.operators = graph.operators, []
        for operator in operators:
            self._operator(operator)
            self.record.did(operator, f"computes in {self.name}")
        graph.operators = self.made
        to = _WIDE if float_io else self.dtype
        graph.outputs = [self._output(value, to) for value in graph.outputs]
        names = [*graph.input_names, *graph.output_names]
        values = (*graph.inputs, *graph.outputs)
        wide = [name for name, each in zip(names, values, strict=True) if each.dtype == _WIDE]
        note = f"float32 as {self.name}" + f", except {', '.join(wide)}" * bool(wide)
        if not self.narrow:
            note = f"nothing is {self.name}: no input is float32, and no weight has {_LARGE} elements"
        self.record.notes.append(note)
        if self.chosen:
            plural = "s" * (self.chosen > 1)
            self.record.notes.append(f"in float32 by rules: {self.chosen} operator{plural}")
        if self.kept:
            kept = ", ".join(f"{count} {name}" for name, count in sorted(self.kept.items()))
            self.record.notes.append(
                f"in float32, since opset {self.opset} does not define them for {self.name}: {kept}"
            )

    def _make_narrow(self, value: Value) -> None:
        if value.dtype == _WIDE:
            value.dtype = self.dtype
            self.narrow.add(id(value))

    def _cast_input(self, value: Value) -> Value:
        """Returns the float32 input of a file for ``value``, which is narrow then."""
        if value.dtype != _WIDE:
            return value
        given = Value(value.name, _WIDE, value.shape)
        self.graph.inherit_origin(given, value)
        value.name = self.names.free(f"{value.name}_{self.name}")
        self._make_narrow(value)
        narrow = Value(self.names.free(f"{value.name}_unclipped"), self.dtype, value.shape)
        self._append("Cast", [given], narrow, {"to": _CODES[self.name]})
        self._within(narrow, value)
        self.casts[id(value), _WIDE.name] = given
        return given

    def _output(self, value: Value, to: np.dtype) -> Value:
        """Returns an output in its type, with the name of ``value``; others than narrow ones as they are."""
        is_ours = id(value) in self.narrow or id(value) in self.wide
        if not is_ours or value.dtype == to:
            return value
        if id(value) not in self.outputs:
            made = Value(value.name, to, value.shape)
            value.name = self.names.free(f"{value.name}_{value.dtype.name}")
            self._cast(value, made)
            self.outputs[id(value)] = made
        return self.outputs[id(value)]

    def _carries(self, value: Value | None) -> bool:
        """Whether a value is narrow, or a weight that will be."""
        if value is None or value.stored is None:
            return value is not None and (id(value) in self.narrow or id(value) in self.wide)
        return value.dtype == _WIDE and len(value.shape) > 1 and value.stored.size >= _LARGE

    def _operator(self, operator: Operator) -> None:
        if any(isinstance(value, TargetGraph) for value in operator.attributes.values()):
            self._with_subgraphs(operator)
            return
        if not (any(map(self._carries, operator.inputs)) or _restores(operator, self.opset)):
            self.made.append(operator)
            return
        if self.rules.type_of([operator], self.name) == "float32":
            self._keep(operator)
            return
        inputs, outputs, is_defined = self._types(operator)
        if operator.type == "Cast" and operator.attributes["to"] == _CODES["float32"]:
            operator.attributes["to"], outputs = _CODES[self.name], [True]
        if not is_defined:
            self.kept[operator.type] = self.kept.get(operator.type, 0) + 1
        operator.inputs = [
            None if value is None else self._taken(value, self.dtype if is_narrow else _WIDE)
            for value, is_narrow in zip(operator.inputs, inputs, strict=True)
        ]
        self.made.append(operator)
        for number, (value, is_narrow) in enumerate(zip(operator.outputs, outputs, strict=True)):
            if value.dtype == _WIDE:
                if is_narrow:
                    self._make_narrow(value)
                elif not is_defined:
                    operator.outputs[number] = self._cast_result(value, operator)

    def _keep(self, operator: Operator) -> None:
        """Computes an operator in float32, as a rule states; its results stay so until others take them."""
        operator.inputs = [
            self._taken(value, _WIDE) if value is not None and not value.is_constant else value
            for value in operator.inputs
        ]
        self.made.append(operator)
        self.chosen += 1
        self.wide.update(id(value) for value in operator.outputs if value.dtype == _WIDE)

    def _types(self, operator: Operator) -> tuple[list[bool], list[bool], bool]:
        """Returns which inputs and outputs become float16 or bfloat16, and if the operator supports that."""
        nothing = [False] * len(operator.inputs), [False] * len(operator.outputs), False
        if operator.type in (PRODUCT, ROWS) and self.name == "float16":
            floats = [value is not None and value.dtype.kind == "f" for value in operator.inputs]
            return [*floats[:3], *[False] * len(floats[3:])], [True], True  # zero points keep their digits
        if operator.domain:
            return nothing
        schema = onnx.defs.get_schema(operator.type, self.opset)
        allowed = {each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints}
        given = list(_repeated(schema.inputs, len(operator.inputs)))
        made = list(_repeated(schema.outputs, len(operator.outputs)))
        carried = {
            type_
            for type_, value in zip(given, operator.inputs, strict=True)
            if value is not None and value.dtype in (_WIDE, self.dtype)
        }
        text = f"tensor({self.name})"
        if not all(text in allowed.get(type_, ()) for type_ in carried):
            return nothing
        return [type_ in carried for type_ in given], [type_ in carried for type_ in made], True

    def _taken(self, value: Value, dtype: np.dtype) -> Value:
        """Returns a value in a float type; integers as they are."""
        if value.is_constant and value.dtype == _WIDE and self._carries(value):
            value = self._constant(value)  # stored narrow, also for operators in float32
        if value.dtype == dtype or value.dtype not in (_WIDE, self.dtype):
            return value
        if value.is_constant and dtype == self.dtype:
            return self._constant(value)
        key = id(value), dtype.name
        if key not in self.casts:
            made = Value(self.names.free(f"{value.name}_{dtype.name}"), dtype, value.shape)
            self._cast(value, made)
            self.casts[key] = made
        return self.casts[key]

    def _cast(self, value: Value, made: Value) -> None:
        """Casts a computed value; what is finite in float32, as the numbers of masks, stays finite."""
        if made.dtype == self.dtype:
            value = self._within(value, Value(self.names.free(f"{value.name}_clipped"), _WIDE, value.shape))
        self._append("Cast", [value], made, {"to": _CODES[made.dtype.name]})

    def _within(self, value: Value, made: Value) -> Value:
        """Clips a value, as ``made``, to the numbers of the narrow type."""
        most = _largest(self.dtype)
        if self.opset < spec("Clip").inputs_since:
            self._append("Clip", [value], made, {"min": -float(most), "max": float(most)})
            return made
        limits = [
            Value(self.names.free(f"{value.name}_{name}"), value.dtype, (), np.array(limit, value.dtype))
            for name, limit in (("least", -most), ("most", most))
        ]
        self._append("Clip", [value, *limits], made, {})
        return made

    def _append(self, type: str, inputs: Sequence[Value], made: Value, attributes: dict[str, Any]) -> None:
        name = f"{made.name}/{type}"
        self.made.append(Operator(type, [*inputs], [made], dict(attributes), name))
        self.graph.inherit_origin(made, inputs[0])

    def _constant(self, value: Value) -> Value:
        if id(value) not in self.constants:
            assert value.data is not None
            data = _rounded(value.data, self.dtype)
            made = Value(self.names.free(f"{value.name}_{self.name}"), self.dtype, value.shape, data)
            self.constants[id(value)] = value, self.graph.inherit_origin(made, value)
        return self.constants[id(value)][1]

    def _cast_result(self, value: Value, operator: Operator) -> Value:
        """Returns the float32 result of an operator whose users take ``value``, which is narrow then."""
        wide = Value(self.names.free(f"{value.name}_float32"), _WIDE, value.shape)
        self.graph.inherit_origin(wide, value)
        self._make_narrow(value)
        self._cast(wide, value)
        return wide

    def _with_subgraphs(self, operator: Operator) -> None:
        """Keeps an operator with subgraphs in float32, and what these take from outside."""
        operator.inputs = [None if value is None else self._taken(value, _WIDE) for value in operator.inputs]
        operator.attributes = {
            name: self._outside_in_float32(value) if isinstance(value, TargetGraph) else value
            for name, value in operator.attributes.items()
        }
        self.made.append(operator)

    def _outside_in_float32(self, graph: TargetGraph) -> TargetGraph:
        operators = [
            replace(
                operator,
                inputs=[value and self._taken(value, _WIDE) for value in operator.inputs],
                attributes={
                    name: self._outside_in_float32(value) if isinstance(value, TargetGraph) else value
                    for name, value in operator.attributes.items()
                },
            )
            for operator in graph.operators
        ]
        outputs = [self._taken(value, _WIDE) for value in graph.outputs]
        return replace(graph, operators=operators, outputs=outputs)


def _restores(operator: Operator, opset: int) -> bool:
    """Whether an operator restores weights from integers, however few its scales are."""
    if operator.type == "DequantizeLinear":
        constants = all(value is None or value.is_constant for value in operator.inputs)
        return constants and opset >= _HALF_SCALES_SINCE
    return operator.type == ROWS


def _repeated(formal: Sequence[onnx.defs.OpSchema.FormalParameter], count: int) -> Iterator[str]:
    """Returns the type variable of each operand; the last one repeats."""
    for number in range(count):
        yield formal[min(number, len(formal) - 1)].type_str


def _largest(dtype: np.dtype) -> np.float32:
    """Returns the largest finite number of float16 or bfloat16."""
    return np.float32(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


def _rounded(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounds a constant; finite numbers stay finite, and small ones of float16 other than 0."""
    most = _largest(dtype)
    data = np.where(np.isfinite(data), np.clip(data, -most, most), data)
    if dtype == np.float16 and data.size == 1:
        is_lost = (data != 0) & (np.abs(data) < _LEAST)
        data = np.where(is_lost, np.copysign(np.float32(_LEAST), data), data)
    return np.asarray(data, np.float32).astype(dtype)
