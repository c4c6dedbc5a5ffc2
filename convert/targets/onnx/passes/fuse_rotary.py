"""ONNX, opset 23: fuse the steps of a rotary position embedding into one RotaryEmbedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir.symbolic.dims import Dim
from tmconvert.lowering.names import Names
from tmconvert.lowering.rewriting import producers
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord
from tmconvert.targets.onnx.operators import spec


class _Rotation(NamedTuple):
    """x * cos + concat(-second half of x, first half) * sin: its values, and its operators but the sum."""

    x: Value
    cos: Value
    sin: Value
    steps: tuple[Operator, ...]


class _Doubled(NamedTuple):
    """A value of two equal halves along the last axis: what was doubled, and the steps after, last first."""

    base: Value
    steps: tuple[Operator, ...]


def fuse_rotary(graph: TargetGraph) -> PassRecord:
    """Replace x * cos + rotate_half(x) * sin by one RotaryEmbedding, in place.

    The halves of the cosines and sines must be equal, which their computation shows, or their values.
    """
    record = PassRecord("fuse_rotary")
    rewriter = _Rewriter(graph)
    for operator in list(graph.operators):
        rotation = rewriter.rotation(operator)
        if rotation is None:
            continue
        reason = rewriter.refusal(rotation)
        if reason is not None:
            record.refuse(operator, reason)
            continue
        rewriter.rewrite(operator, rotation)
        record.did(operator, f"is a rotary embedding of `{rotation.x.name}`")
    rewriter.finish()
    return record


class _Rewriter:
    def __init__(self, graph: TargetGraph) -> None:
        self.graph = graph
        self.producers = producers(graph)
        self.names = Names(value.name for value in (*graph.inputs, *graph.constants()))
        self.names.take(value.name for each in graph.all_operators() for value in each.outputs)
        self.names.take(each.name for each in graph.all_operators())
        self.halves: dict[tuple[int, Any], Value] = {}
        self.batches: dict[Any, Value] = {}
        self.replaced: list[Operator] = []
        self.written: dict[int, list[Operator]] = {}  # before which operator, by its id

    # ---- the pattern

    def rotation(self, operator: Operator) -> _Rotation | None:
        if operator.type != "Add":
            return None
        first, second = (self._made_by("Mul", value) for value in operator.inputs)
        if first is None or second is None:
            return None
        for direct, rotated in ((first, second), (second, first)):
            for place in (0, 1):
                steps = self._rotated(rotated.inputs[place])
                if steps is None:
                    continue
                x, sin = steps[-1].inputs[0], rotated.inputs[1 - place]
                cos = [value for value in direct.inputs if value is not x]
                if x is not None and sin is not None and len(cos) == 1 and cos[0] is not None:
                    return _Rotation(x, cos[0], sin, (direct, rotated, *steps))
        return None

    def _rotated(self, value: Value | None) -> tuple[Operator, ...] | None:
        """Returns the Concat, Neg and Split that swap the halves of the last axis; None for other values."""
        concat = self._made_by("Concat", value)
        negated = None if concat is None else self._made_by("Neg", concat.inputs[0])
        split = None if negated is None else self._made_by("Split", negated.inputs[0])
        if concat is None or negated is None or split is None or len(concat.inputs) != 2:
            return None
        rank = len(concat.outputs[0].shape)
        if {concat.attributes["axis"], split.attributes.get("axis", 0)} - {rank - 1, -1}:
            return None
        halves = split.outputs
        is_rotated = len(halves) == 2 and halves[1] is negated.inputs[0] and halves[0] is concat.inputs[1]
        is_even = is_rotated and halves[0].shape == halves[1].shape
        return (concat, negated, split) if is_even else None

    def refusal(self, rotation: _Rotation) -> str | None:
        x = rotation.x
        if len(x.shape) != 4 or x.dtype != np.float32:
            return f"`{x.name}` does not have four axes of float32"
        for value in (rotation.cos, rotation.sin):
            doubled = self._doubled(value)
            if doubled is None:
                return f"the halves of `{value.name}` are not known to be equal"
            batch, sequence = x.shape[0], x.shape[2]
            if value.shape not in ((each, 1, sequence, x.shape[3]) for each in (1, batch)):
                return f"`{value.name}` does not have one row for each position"
            if doubled.base.shape[-2] != sequence or len(doubled.base.shape) not in (2, 3):
                return f"`{value.name}` is made of rows in another order"
        return None

    def _doubled(self, value: Value | None) -> _Doubled | None:
        steps: list[Operator] = []
        while value is not None:
            if value.is_constant:
                return self._doubled_constant(value, steps)
            operator = self.producers.get(id(value))
            if operator is None:
                return None
            operand = operator.inputs[0]
            if operator.type == "Concat":
                is_doubled = len(operator.inputs) == 2 and operand is operator.inputs[1]
                is_last = operator.attributes["axis"] in (len(value.shape) - 1, -1)
                return _Doubled(operand, tuple(steps)) if operand and is_doubled and is_last else None
            if spec(operator.type).is_view:
                if operand is None or operand.shape[-1:] != value.shape[-1:]:
                    return None
                value = operand
                continue
            value = operand if spec(operator.type).is_unary else _scaled(operator)
            steps.append(operator)
        return None

    def _doubled_constant(self, value: Value, steps: Sequence[Operator]) -> _Doubled | None:
        data = value.data
        if data is None or data.ndim < 2 or data.shape[-1] % 2:
            return None
        half = data.shape[-1] // 2
        if not np.array_equal(data[..., :half], data[..., half:]):
            return None
        rows = np.ascontiguousarray(data[..., :half]).reshape(-1, data.shape[-2], half)
        made = Value(self.names.free(f"{value.name}_half"), rows.dtype, rows.shape, rows)
        return _Doubled(made, tuple(steps))

    # ---- the replacement

    def rewrite(self, operator: Operator, rotation: _Rotation) -> None:
        halves = [self._half(value, rotation.x, operator) for value in (rotation.cos, rotation.sin)]
        operator.type, operator.inputs, operator.attributes = ("RotaryEmbedding", [rotation.x, *halves], {})
        self.replaced += rotation.steps

    def _half(self, value: Value, x: Value, place: Operator) -> Value:
        """Returns the first half of cosines or sines, [batch, sequence, half]; written before ``place``."""
        key = id(value), x.shape[0]
        if key not in self.halves:
            doubled = self._doubled(value)
            assert doubled is not None
            made = doubled.base
            for step in reversed(doubled.steps):
                inputs = [made if self._is_chain(each) else each for each in step.inputs]
                like = step.outputs[0]
                name = f"{like.name}_half"
                made = self._write(place, step.type, inputs, name, like.dtype, made.shape, step.attributes)
            if len(made.shape) == 2:
                axes = self._constant(f"{made.name}_axes", [0])
                name = f"{value.name}_rows"
                made = self._write(place, "Unsqueeze", [made, axes], name, made.dtype, (1, *made.shape))
            if made.shape[0] != x.shape[0]:
                inputs = [made, self._batch(x, place)]
                shape, name = (x.shape[0], *made.shape[1:]), f"{value.name}_batch"
                made = self._write(place, "Expand", inputs, name, made.dtype, shape)
            self.halves[key] = made
        return self.halves[key]

    def _batch(self, x: Value, place: Operator) -> Value:
        """Returns the shape that repeats rows for each element of the batch of ``x``."""
        batch = x.shape[0]
        if batch not in self.batches:
            if isinstance(batch, Dim):
                name, int64 = f"{x.name}_batch", np.dtype(np.int64)
                size = self._write(place, "Shape", [x], name, int64, (1,), {"start": 0, "end": 1})
                ones = self._constant(f"{x.name}_ones", [1, 1])
                copies = self._write(place, "Concat", [size, ones], name, int64, (3,), {"axis": 0})
                self.batches[batch] = copies
            else:
                self.batches[batch] = self._constant(f"{x.name}_batch", [batch, 1, 1])
        return self.batches[batch]

    def _write(
        self,
        place: Operator,
        type: str,
        inputs: list[Value | None],
        name: str,
        dtype: np.dtype,
        shape: tuple[Any, ...],
        attributes: dict[str, Any] | None = None,
    ) -> Value:
        """Writes an operator before ``place`` and returns its result."""
        made = Value(self.names.free(name), dtype, shape)
        own = self.names.free(f"{place.name}_{type}")
        written = Operator(type, inputs, [made], dict(attributes or {}), own, place.source)
        self.written.setdefault(id(place), []).append(written)
        return self.graph.inherit_origin(made, place.outputs[0])

    def _constant(self, name: str, numbers: Sequence[int]) -> Value:
        array = np.array(numbers, np.int64)
        return Value(self.names.free(name), array.dtype, array.shape, array)

    def finish(self) -> None:
        """Inserts what was written, and removes the operators of fused rotations with what only they used."""
        graph, open_ = self.graph, self.replaced
        written = self.written
        graph.operators = [each for old in graph.operators for each in (*written.get(id(old), ()), old)]
        uses = graph.use_counts()
        gone: set[int] = set()
        while open_:
            operator = open_.pop()
            if id(operator) in gone or any(uses[id(value)] for value in operator.outputs):
                continue
            gone.add(id(operator))
            for value in operator.inputs:
                uses[id(value)] -= 1
                producer = None if value is None else self.producers.get(id(value))
                open_ += [] if producer is None else [producer]
        graph.operators = [each for each in graph.operators if id(each) not in gone]

    def _made_by(self, type: str, value: Value | None) -> Operator | None:
        operator = self.producers.get(id(value))
        return operator if operator is not None and operator.type == type else None

    def _is_chain(self, value: Value | None) -> bool:
        """Whether ``value`` is the operand of a step that is not a constant factor."""
        return value is not None and not (
            value.is_constant and value.data is not None and value.data.size == 1
        )


def _scaled(operator: Operator) -> Value | None:
    """Returns the operand that the operator multiplies by one constant number; None for other operators."""
    if operator.type != "Mul":
        return None
    first, second = operator.inputs
    if first is None or second is None:
        return None
    for value, factor in ((first, second), (second, first)):
        if factor.is_constant and factor.data is not None and factor.data.size == 1:
            return value
    return None
