"""Removes clamps whose bound is outside of the quantized range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.ir.fake_quant import quantize
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value


def without_redundant_clamps(graph: TargetGraph, minimum: str) -> TargetGraph:
    """Returns a copy of ``graph`` without such operators ``minimum``; ``graph`` itself if it has none.

    Quantization clamps to the range of the QParams. A minimum with a bound that is quantized to the upper end
    of that range has no effect.
    """
    uses = _uses(graph)
    moved: dict[int, Value] = {}  # what an operator in front of a minimum gives in its place
    gone: set[int] = set()
    makers = {id(value) for operator in graph.operators for value in operator.outputs}
    for operator in graph.operators:
        if operator.type != minimum or len(operator.inputs) != 2 or not _is_redundant(operator):
            continue
        x = operator.inputs[0]
        if x is not None and id(x) in makers and uses[id(x)] == 1 and x.shape == operator.outputs[0].shape:
            moved[id(x)] = operator.outputs[0]
            gone.add(id(operator))
    if not gone:
        return graph
    operators = [
        replace(operator, outputs=[moved.get(id(value), value) for value in operator.outputs])
        for operator in graph.operators
        if id(operator) not in gone
    ]
    return replace(graph, operators=operators)


def _is_redundant(operator: Operator) -> bool:
    qparams, bounds = operator.outputs[0].qparams, operator.inputs[1]
    if (
        qparams is None
        or qparams.inferred
        or len(qparams.scale) != 1
        or bounds is None
        or bounds.data is None
    ):
        return False
    return bool(np.all(quantize(bounds.data, qparams) >= qparams.quant_max))


def _uses(graph: TargetGraph) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value in [*(value for operator in graph.operators for value in operator.inputs), *graph.outputs]:
        if value is not None:
            counts[id(value)] = counts.get(id(value), 0) + 1
    return counts
