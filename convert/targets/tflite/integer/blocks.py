"""SPACE_TO_DEPTH and DEPTH_TO_SPACE in int16, which has no kernels: reshape, transpose, reshape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value
from tmconvert.targets.tflite.integer.resolve import ResolvedGraph

_ORDER = np.array([0, 2, 1, 3], np.int32)


def decompose_blocks(resolved: ResolvedGraph) -> TargetGraph:
    """Returns a copy of the graph with views in place of operators with a ``block_size`` in int16."""
    graph = resolved.graph
    if not any(map(_has_blocks, graph.operators)):
        return graph
    all_qparams, operators = resolved.all_qparams, []
    for operator in graph.operators:
        qparams = all_qparams.get(operator.outputs[0])
        if _has_blocks(operator) and qparams is not None and qparams.dtype == "int16":
            operators += _views(operator, operator.inputs[0], operator.outputs[0])
        else:
            operators.append(operator)
    return graph if operators == graph.operators else replace(graph, operators=operators)


def _has_blocks(operator: Operator) -> bool:
    return "block_size" in operator.attributes


def _views(operator: Operator, value: Value | None, result: Value) -> list[Operator]:
    """Returns shapes that split rows of pixels into columns of blocks, or the reverse."""
    assert value is not None
    size = operator.attributes["block_size"]
    assert isinstance(size, int)
    small = result if operator.type == "SPACE_TO_DEPTH" else value
    batch, rows, columns, channels = small.shape
    apart = (batch * rows, size, columns, channels // size)
    together = (batch * rows, columns, size, channels // size)
    first, last = (apart, together) if operator.type == "SPACE_TO_DEPTH" else (together, apart)
    split, transposed = (
        Value(f"{result.name}_{name}", value.dtype, shape)
        for name, shape in (("blocks", first), ("turned", last))
    )
    order = Value(f"{transposed.name}_order", _ORDER.dtype, _ORDER.shape, _ORDER)
    return [
        _reshape(operator, value, split),
        replace(operator, type="TRANSPOSE", inputs=[split, order], outputs=[transposed], attributes={}),
        _reshape(operator, transposed, result),
    ]


def _reshape(operator: Operator, value: Value, made: Value) -> Operator:
    sizes = np.array(made.shape, np.int32)
    shape = Value(f"{made.name}_shape", sizes.dtype, sizes.shape, sizes)
    attributes: dict[str, Attribute] = {"new_shape": list(made.shape)}
    return replace(operator, type="RESHAPE", inputs=[value, shape], outputs=[made], attributes=attributes)
