"""TFLite: copy biases that operators share: quantizers give each the scale of its products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord

# The position of an operator's bias among its inputs.
BIAS_INPUTS = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3}


def own_biases(graph: TargetGraph) -> PassRecord:
    """Copy constants that are the bias of one operator and used by another, in place."""
    record = PassRecord("own_biases")
    names = Names(value.name for value in (*graph.inputs, *graph.constants()))
    names.take(value.name for operator in graph.operators for value in operator.outputs)
    seen = {
        id(value)
        for operator in graph.operators
        for value in operator.inputs
        if value is not None and not any(value is bias for bias in biases(operator))
    }
    for operator in graph.operators:
        for bias in biases(operator):
            if id(bias) in seen:
                operator.inputs = list(operator.inputs)
                operator.inputs[BIAS_INPUTS[operator.type]] = replace(bias, name=names.free(bias.name))
                record.did(operator, f"has a copy of the bias `{bias.name}` now")
            seen.add(id(bias))
    return record


def biases(operator: Operator) -> Iterator[Value]:
    """The constant bias of an operator, if it has one."""
    at = BIAS_INPUTS.get(operator.type, len(operator.inputs))
    value = operator.inputs[at] if at < len(operator.inputs) else None
    if value is not None and value.is_constant:
        yield value
