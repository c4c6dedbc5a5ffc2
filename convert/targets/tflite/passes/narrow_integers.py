"""TFLite: narrow int64 to int32 where no value can be too large: runtimes and accelerators support int32
better.

Intervals hold for every run: those of constants, of results of other types, of indices (a run with an index
out of range is an error), and those that operators compute from them. A tensor whose interval fits int32
becomes int32, as do graph outputs. All others stay int64, with a CAST of operands that became int32.

An input becomes int32 if its interval fits, or if it is only moved, compared, converted, added, multiplied or
used as an index: callers are assumed to pass int32 values there, for which the results are those of the
source. An input of remainders, quotients or bitwise ops, or that is returned as an integer, stays int64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tmconvert.lowering.rewriting import producers, users
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.ranges import MOST_ELEMENTS, elements_of
from tmconvert.targets.tflite.operators.record import OperatorSpec, Range

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_NARROW: Range = (-(1 << 31), (1 << 31) - 1)
_LIMITS = "CEIL FLOOR MAXIMUM MINIMUM ROUND"  # operators whose results constants limit, or that keep limits
_WIDE: Range = (-(1 << 63), (1 << 63) - 1)


def narrow_integers(graph: TargetGraph) -> PassRecord:
    """Narrow int64 tensors to int32 where no value can be too large, in place.

    Inputs and outputs of subgraphs stay as they are. The note of the record names those of the model that
    became int32.
    """
    record = PassRecord("narrow_integers")
    inside, edges = 0, list[str]()
    for each in list(graph.nested()):
        narrowing = _Narrowing(each, record, is_main=each is graph)
        narrowing.run()
        inside += narrowing.inside
        if each is graph:
            given = zip(graph.input_names, graph.inputs, strict=True)
            inputs = [name for name, value in given if id(value) in narrowing.narrow]
            outputs = [graph.output_names[number] for number in narrowing.outputs]
            edges = [*_counted("input", inputs), *_counted("output", outputs)]
    if edges or inside:
        tensors = f"{inside} tensor{'s' * (inside > 1)} inside"
        record.notes.append("int64 as int32: " + "; ".join([*edges, *[tensors] * bool(inside)]))
    return record


def _counted(kind: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{kind}{'s' * (len(names) > 1)} {', '.join(names)}"


class _GraphInput(NamedTuple):
    """An input of the model, for the pass log."""

    outputs: tuple[Value, ...]
    source: None = None


class _Narrowing:
    """Narrowing of one graph. ``narrow`` are the ids of values and inputs that become int32, ``operators``
    those of operators whose int64 tensors all become int32.
    """

    def __init__(self, graph: TargetGraph, record: PassRecord, *, is_main: bool) -> None:
        self.graph = graph
        self.record = record
        self.is_main = is_main
        self.ranges = _Ranges(graph)
        self.narrow: set[int] = set()
        self.operators: set[int] = set()
        self.fixed = set() if is_main else {id(value) for value in graph.outputs}
        self.outputs: list[int] = []
        self.inside = 0

    def run(self) -> None:
        if self.is_main:
            self._inputs()
        for operator in self.graph.operators:
            self._narrow(operator)
        self.outputs = [i for i, value in enumerate(self.graph.outputs) if id(value) in self.narrow]
        _Rewriting(self.graph, self.narrow, self.operators).run()
        left = {id(value) for operator in self.graph.operators for value in operator.outputs}
        self.inside = len((left & self.narrow) - {id(value) for value in self.graph.outputs})

    def _narrow(self, operator: Operator) -> None:
        made = [value for value in operator.outputs if value.dtype == _INT64]
        wide = _wide_operands(operator)
        reason = next(
            (f"its operand `{value.name}` is int64" for value in wide if not self._may_be(value)), None
        )
        if reason is None and spec(operator.type).compares:
            self.operators.add(id(operator))
        reasons = [reason, *(self._refusal(operator, value) for value in made)]
        reason = next((each for each in reasons if each is not None), None)
        if made and reason is None:
            self.operators.add(id(operator))
            self.narrow |= {id(value) for value in made}
            self.record.did(operator, "is int32 now")
        elif made and reason is not None:
            self.record.refuse(operator, reason)

    def _inputs(self) -> None:
        takers = users(self.graph)
        outputs = {id(value) for value in self.graph.outputs}
        for value in self.graph.inputs:
            if value.dtype != _INT64:
                continue
            is_output = id(value) in outputs
            if not is_output and (
                _within(self.ranges.of(value), _NARROW) or _is_small(value, takers, outputs)
            ):
                self.narrow.add(id(value))
                self.record.did(_GraphInput((value,)), "is an int32 input now")
            else:
                why = "it is an output, too" if is_output else "its values may not fit int32"
                self.record.refuse(_GraphInput((value,)), why)
        self.ranges.tell({id(value): _NARROW for value in self.graph.inputs if id(value) in self.narrow})

    def _may_be(self, value: Value) -> bool:
        return id(value) in self.narrow or (value.is_constant and _within(self.ranges.of(value), _NARROW))

    def _refusal(self, operator: Operator, value: Value) -> str | None:
        """Returns why a result of an operator stays int64."""
        if id(value) in self.fixed:
            return "it is an output of a subgraph"
        if not (_computes(spec(operator.type)) or operator.type == "CAST"):
            return f"{operator.type} has no rule for int32"
        return None if _within(self.ranges.of(value), _NARROW) else "its values may not fit int32"


class _Ranges:
    """Intervals of all integer values of a graph."""

    def __init__(self, graph: TargetGraph) -> None:
        self.graph = graph
        self.makers = producers(graph)
        self.known: dict[int, Range] = {}
        self.tell({})

    def of(self, value: Value) -> Range:
        if id(value) not in self.known:
            self.known[id(value)] = _own_range(value)
        return self.known[id(value)]

    def tell(self, more: Mapping[int, Range]) -> None:
        """Adds known intervals ``more``, and propagates forward, backward, and forward again."""
        for value in self.graph.inputs:
            self._refine(value, more.get(id(value), _WIDE))
        for _ in range(2):
            for operator in self.graph.operators:
                for value in operator.outputs:
                    if value.dtype.kind in "iub":
                        self._refine(value, self._made(operator, value))
            for operator in reversed(self.graph.operators):
                self._needed(operator)

    def _refine(self, value: Value, range: Range) -> None:
        low, high = self.of(value)
        made = max(low, range[0]), min(high, range[1])
        if made[0] <= made[1]:  # else no run gets there
            self.known[id(value)] = made

    def _made(self, operator: Operator, value: Value) -> Range:
        """Returns the interval of a result, from its operator."""
        known, operands = spec(operator.type), _operands(operator)
        if operator.attributes.get("fused_activation_function", "NONE") != "NONE":
            return _WIDE
        if any(value is operator.outputs[i] for i in known.gives_indices):
            return 0, elements_of(operator) - 1
        if operator.type == "CAST":
            (x,) = operator.inputs
            assert x is not None
            if x.dtype.kind == "f":
                return self._truncated(x)
            is_exact = x.dtype.kind in "iub" and value.dtype.itemsize >= x.dtype.itemsize
            return self.of(x) if is_exact else _WIDE
        made = known.range_of(operator, [self.of(each) for each in operands]) if operands else None
        is_right = made is not None and _within(made, _own_range(value))  # else it wraps around
        return made if made is not None and is_right else _WIDE

    def _truncated(self, x: Value) -> Range:
        """Returns the interval of the integers of floats that constants limit, as those of positions are."""
        limits: list[tuple[str, np.ndarray]] = []
        while (maker := self.makers.get(id(x))) is not None and maker.type in _LIMITS.split():
            known = [each.data for each in maker.inputs if each is not None and each.data is not None]
            computed = [each for each in maker.inputs if each is not None and each.data is None]
            if len(computed) != 1 or (known and not np.isfinite(known[0]).all()):
                break
            limits += [(maker.type, array) for array in known]
            x = computed[0]
        low, high = map(float, _WIDE)
        for type, array in reversed(limits):
            limit = max if type == "MAXIMUM" else min
            low, high = limit(low, float(array.min())), limit(high, float(array.max()))
        return max(math.floor(low), _WIDE[0]), min(math.ceil(high), _WIDE[1])

    def _needed(self, operator: Operator) -> None:
        """Returns the intervals of operands that a successful run implies."""
        known = spec(operator.type)
        if known.index is not None and known.index_is_checked:
            index = operator.inputs[known.index]
            assert index is not None
            self._refine(index, (0, MOST_ELEMENTS - 1))
        if len(operator.outputs) != 1 or operator.outputs[0].dtype.kind not in "iub":
            return
        low, high = self.of(operator.outputs[0])
        operands = _operands(operator)
        if known.keeps_all:
            self._refine(operands[0], (low, high))
        elif known.needed_ranges is not None and operator.outputs[0].dtype == _INT64:
            needed = known.needed_ranges((low, high), [self.of(each) for each in operands])
            for value, range in zip(operands, needed, strict=True):
                if range is not None and _within(range, _WIDE):  # no result beyond int64 wraps to the same
                    self._refine(value, range)


def _own_range(value: Value) -> Range:
    if value.dtype.kind == "b":
        return 0, 1
    if value.dtype.kind not in "iu":
        return _WIDE
    if value.data is not None and value.data.size:
        return int(value.data.min()), int(value.data.max())
    limits = np.iinfo(value.dtype)
    return int(limits.min), int(limits.max)


def _operands(operator: Operator) -> list[Value]:
    """Returns the operands that determine results, or are compared."""
    known = spec(operator.type)
    if not (_computes(known) or known.compares):
        return []
    found = [operator.inputs[place] for place in known.data_of(len(operator.inputs))]
    return [value for value in found if value is not None]


def _computes(known: OperatorSpec) -> bool:
    """Whether the operator has a range rule for integer results."""
    return known.moves or known.result_range is not None


def _wide_operands(operator: Operator) -> list[Value]:
    return [value for value in _operands(operator) if value.dtype == _INT64]


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _is_small(value: Value, users: Mapping[int, Sequence[Operator]], outputs: set[int]) -> bool:
    """Whether an integer is used only as index, in comparisons, or converted to another type."""
    waiting, seen = [value], {id(value)}
    while waiting:
        x = waiting.pop()
        if id(x) in outputs:
            return False
        for operator in users.get(id(x), ()):
            place = spec(operator.type).index
            is_index = place is not None and operator.inputs[place] is x
            is_reported = operator.type == "CAST" or any(y is x for y in _operands(operator))
            if operator.type == "FLOOR_MOD" or not (is_index or is_reported):
                return False
            made = [y for y in operator.outputs if y.dtype == _INT64 and id(y) not in seen]
            seen |= {id(y) for y in made}
            waiting += [] if is_index else made
    return True


class _Rewriting:
    """Converts the values ``narrow`` to int32, and inserts CASTs to and from int64."""

    def __init__(self, graph: TargetGraph, narrow: set[int], operators: set[int]) -> None:
        self.graph = graph
        self.narrow = narrow
        self.operators = operators
        self.constants: dict[int, Value] = {}
        self.widened: dict[int, Value] = {}
        self.same: dict[int, Value] = {}  # what stands for the results of casts that became none

    def run(self) -> None:
        operators, self.graph.operators = self.graph.operators, []
        for value in self.graph.inputs:
            if id(value) in self.narrow:
                value.dtype = _INT32
        for operator in operators:
            inputs = [
                None if value is None else self._operand(operator, place, value)
                for place, value in enumerate(operator.inputs)
            ]
            for value in operator.outputs:
                if id(value) in self.narrow:
                    value.dtype = _INT32
            if operator.type != "CAST" or not self._is_none(inputs[0], operator.outputs[0]):
                self.graph.operators.append(replace(operator, inputs=inputs))

    def _operand(self, operator: Operator, place: int, value: Value) -> Value:
        """Returns the replacement of the operand ``value``."""
        now = self.same.get(id(value), value)
        if id(operator) in self.operators and any(value is operand for operand in _operands(operator)):
            return self._constant(value) if value.is_constant else now
        if id(value) not in self.narrow or operator.type == "CAST" or spec(operator.type).index == place:
            return now
        if id(value) not in self.widened:
            name = f"{value.name}_int64"
            made = self.widened[id(value)] = Value(name, _INT64, value.shape)
            self.graph.operators.append(Operator("CAST", [now], [made], {}, name, operator.source))
        return self.widened[id(value)]

    def _constant(self, value: Value) -> Value:
        if value.dtype != _INT64:
            return value
        if id(value) not in self.constants:
            assert value.data is not None
            data = value.data.astype(_INT32)
            self.constants[id(value)] = Value(f"{value.name}_int32", _INT32, value.shape, data)
        return self.constants[id(value)]

    def _is_none(self, value: Value | None, result: Value) -> bool:
        """Whether a CAST is an identity, so that ``value`` can replace ``result``, or the reverse."""
        outputs = self.graph.outputs
        if value is None or value.dtype != result.dtype:
            return False
        if all(result is not output for output in outputs):
            self.same[id(result)] = value
            return True
        made_here = any(value is each for operator in self.graph.operators for each in operator.outputs)
        if not made_here or any(value is output for output in outputs):
            return False
        for operator in self.graph.operators:
            operator.inputs = [result if each is value else each for each in operator.inputs]
            operator.outputs = [result if each is value else each for each in operator.outputs]
        self.same = {key: result if each is value else each for key, each in self.same.items()}
        self.same[id(value)] = result
        return True
