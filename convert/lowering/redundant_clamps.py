"""Removes clamps whose bound is outside of the quantized range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tmconvert.ir import QParams
from tmconvert.ir.fake_quant import quantize
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value

Bounds = tuple[Any, Any]  # numbers or constant values; None for no bound


def without_redundant_clamps(
    graph: TargetGraph,
    bounds_of: Callable[[Operator], Bounds | None],
    in_file: Callable[[QParams], QParams | None] = lambda qparams: qparams,
) -> TargetGraph:
    """Returns a copy of ``graph`` without such clamps; ``graph`` itself if it has none.

    Quantization clamps to the range of the QParams. A bound that is quantized to the end of that range has no
    effect. ``bounds_of`` returns the lower and the upper bound of an operator, None for other operators;
    ``in_file`` the QParams in the file for those of the source.
    """
    uses = _uses(graph)
    moved: dict[int, Value] = {}  # what an operator in front of a clamp gives in its place
    gone: set[int] = set()
    makers = {id(value) for operator in graph.operators for value in operator.outputs}
    for operator in graph.operators:
        bounds = bounds_of(operator)
        qparams = operator.outputs[0].qparams
        if bounds is None or qparams is None or qparams.inferred:
            continue
        stored = in_file(qparams)
        if stored is None or not _is_redundant(stored, *bounds):
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
    return without_redundant_clamps(replace(graph, operators=operators), bounds_of, in_file)


def bound_by_operand(operator: Operator, minimum: str, maximum: str = "") -> Bounds | None:
    """Returns the bounds of a minimum or maximum with a constant, by the names of these operators."""
    if operator.type not in (minimum, maximum) or len(operator.inputs) != 2:
        return None
    bound = operator.inputs[1]
    if bound is None or bound.data is None:
        return None
    return (None, bound.data) if operator.type == minimum else (bound.data, None)


def _is_redundant(qparams: QParams, low: Any, high: Any) -> bool:
    if len(qparams.scale) != 1:
        return False
    lowest, highest = (None if end is None else quantize(np.asarray(end), qparams) for end in (low, high))
    is_low = lowest is None or bool(np.all(lowest <= qparams.quant_min))
    return is_low and (highest is None or bool(np.all(highest >= qparams.quant_max)))


def _uses(graph: TargetGraph) -> dict[int, int]:
    counts: dict[int, int] = {}
    for value in [*(value for operator in graph.operators for value in operator.inputs), *graph.outputs]:
        if value is not None:
            counts[id(value)] = counts.get(id(value), 0) + 1
    return counts
