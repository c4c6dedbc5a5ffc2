"""ONNX: fuse clip(a * x + b, 0, 1) into one HardSigmoid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tmconvert.lowering.rewriting import producers, remove_operators
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord


class _Line(NamedTuple):
    """factor * x + offset, and the operators that compute it."""

    x: Value
    factor: float
    offset: float
    steps: tuple[Operator, Operator]


def fuse_hard_sigmoid(graph: TargetGraph) -> PassRecord:
    """Replace clip(a * x + b, 0, 1) of float32 by one HardSigmoid, where nothing else uses the steps."""
    record = PassRecord("fuse_hard_sigmoid")
    makers = producers(graph)
    uses = graph.use_counts()
    gone: set[int] = set()
    for operator in graph.operators:
        line = _line(operator, makers) if operator.type == "Clip" else None
        if line is None or operator.outputs[0].dtype != np.float32:
            continue
        if any(uses[id(step.outputs[0])] > 1 for step in line.steps):
            record.refuse(operator, "another operator uses what is clipped")
            continue
        operator.type, operator.inputs = "HardSigmoid", [line.x]
        operator.attributes = {"alpha": line.factor, "beta": line.offset}
        gone |= set(map(id, line.steps))
        record.did(operator, f"is a hard sigmoid of `{line.x.name}`")
    remove_operators(graph, gone)
    return record


def _line(clip: Operator, makers: dict[int, Operator]) -> _Line | None:
    """Returns what is clipped to [0, 1], if it is a line."""
    bounds: list[object] = [clip.attributes.get("min"), clip.attributes.get("max")]
    if len(clip.inputs) == 3:  # since opset 11
        bounds = [_number(each) for each in clip.inputs[1:]]
    total = makers.get(id(clip.inputs[0]))
    if bounds != [0.0, 1.0] or total is None or total.type != "Add":
        return None
    product, offset = _with_number(total)
    scaled = makers.get(id(product))
    if offset is None or scaled is None or scaled.type != "Mul":
        return None
    x, factor = _with_number(scaled)
    if x is None or factor is None or x.shape != clip.outputs[0].shape:
        return None
    return _Line(x, factor, offset, (scaled, total))


def _with_number(operator: Operator) -> tuple[Value | None, float | None]:
    """Returns the operand that is not a constant number, and the number."""
    for value, other in (operator.inputs, operator.inputs[::-1]):
        number = _number(other)
        if number is not None:
            return value, number
    return None, None


def _number(value: Value | None) -> float | None:
    if value is None or not value.is_constant or value.data is None or value.data.size != 1:
        return None
    return float(value.data.reshape(-1)[0])
