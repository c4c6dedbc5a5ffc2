"""Clamps of integers: what saturates needs none, and int16 has no kernel for one between 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tmconvert.ir import QParams
from tmconvert.lowering.names import Names
from tmconvert.lowering.redundant_clamps import Bounds, bound_by_operand, without_redundant_clamps
from tmconvert.lowering.rewriting import names_of_values
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.integer.qparams import activation_qparams

_UNIT = "RELU_0_TO_1"


def legalize_clamps(graph: TargetGraph, kind: IntegerType) -> TargetGraph:
    """Returns a copy of ``graph`` without clamps at the ends of the integers, and with two operators for
    those between 0 and 1 in int16.
    """

    def in_file(qparams: QParams) -> QParams | None:
        return activation_qparams(qparams, kind)

    graph = without_redundant_clamps(graph, _bounds, in_file)
    if not any(operator.type == _UNIT for operator in graph.operators):
        return graph
    names = names_of_values(graph)
    operators = [each for operator in graph.operators for each in _split_clamp(operator, graph, kind, names)]
    return graph if operators == graph.operators else replace(graph, operators=operators)


def _bounds(operator: Operator) -> Bounds | None:
    """Returns the bounds of a clamp that no kernel fuses into the operator before it."""
    return (0.0, 1.0) if operator.type == _UNIT else bound_by_operand(operator, "MINIMUM", "MAXIMUM")


def _split_clamp(
    operator: Operator, graph: TargetGraph, kind: IntegerType, names: Names
) -> Iterator[Operator]:
    (result,) = operator.outputs
    qparams = None if result.qparams is None else activation_qparams(result.qparams, kind)
    if operator.type != _UNIT or qparams is None or qparams.dtype != "int16":
        yield operator
        return
    lower = graph.inherit_origin(
        Value(names.free(f"{result.name}_lower"), result.dtype, result.shape), result
    )
    zero, one = (
        Value(names.free(f"{result.name}_{name}"), result.dtype, (), np.array(number, result.dtype))
        for name, number in (("zero", 0), ("one", 1))
    )
    yield replace(operator, type="MAXIMUM", inputs=[*operator.inputs, zero], outputs=[lower])
    yield replace(operator, type="MINIMUM", inputs=[lower, one])
