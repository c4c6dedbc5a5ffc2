"""Resolves QParams: the stage ``resolve``."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.targets.onnx.integer.types import activation_qparams
from tmconvert.targets.onnx.operators import spec


def resolve(graph: TargetGraph, activations: str) -> dict[Value, QParams]:
    """Returns the QParams in the file of each input and result that is quantized, in their order.

    Operators between pairs have the QParams of their operand, and clamps give theirs to an operand that
    nothing else uses. Raises Refusal for QParams that no type of the opset can express.
    """
    assert isinstance(graph.version, int)
    found = _source_qparams(graph)
    results = (value for operator in graph.operators for value in operator.outputs)
    return {
        value: activation_qparams(value.name, found[value], activations, graph.version)
        for value in (*graph.inputs, *results)
        if value in found
    }


def _source_qparams(graph: TargetGraph) -> dict[Value, QParams]:
    """Returns the QParams of each input and result that is quantized, as the source has them."""
    found = {
        value: value.qparams
        for value in graph.inputs
        if value.qparams is not None and value.dtype == np.float32
    }
    uses = Counter(value for operator in graph.operators for value in operator.inputs)
    for operator in graph.operators:
        x = operator.inputs[0] if operator.inputs else None
        for value in operator.outputs:
            if value.qparams is not None and not value.qparams.inferred and value.dtype == np.float32:
                found[value] = value.qparams
            elif spec(operator.type).is_between_pairs and x is not None and x in found:
                found[value] = found[x]
        if spec(operator.type).clamps and x is not None and not x.is_constant and uses[x] == 1:
            qparams = found.get(operator.outputs[0])
            if qparams is not None and x not in graph.outputs:
                found.setdefault(x, qparams)
    return found
