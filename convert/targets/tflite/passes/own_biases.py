"""TFLite: copy shared biases, since quantizers give each the scale of its operator."""

from __future__ import annotations

from dataclasses import replace

from tmconvert.lowering.rewriting import names_of_values
from tmconvert.lowering.target_graph import Operator, TargetGraph
from tmconvert.passes.rewriting import PassRecord
from tmconvert.targets.tflite.operators import spec


def own_biases(graph: TargetGraph) -> PassRecord:
    """Copy constants that are the bias of one operator and used by another, in place."""
    record = PassRecord("own_biases")
    names = names_of_values(graph)
    places = {id(operator): bias_index(operator) for operator in graph.operators}
    seen = {
        id(value)
        for operator in graph.operators
        for place, value in enumerate(operator.inputs)
        if value is not None and place != places[id(operator)]
    }
    for operator in graph.operators:
        place = places[id(operator)]
        bias = None if place is None else operator.inputs[place]
        if place is None or bias is None:
            continue
        if id(bias) in seen:
            operator.inputs = list(operator.inputs)
            operator.inputs[place] = replace(bias, name=names.free(bias.name))
            record.did(operator, f"has a copy of the bias `{bias.name}` now")
        seen.add(id(bias))
    return record


def bias_index(operator: Operator) -> int | None:
    """The index of the constant bias of an operator among its inputs; None without one."""
    weights = spec(operator.type).weights
    if weights is None or weights.bias >= len(operator.inputs):
        return None
    bias = operator.inputs[weights.bias]
    return weights.bias if bias is not None and bias.is_constant else None
