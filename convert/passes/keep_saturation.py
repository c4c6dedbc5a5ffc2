"""Keep the saturation of quantized tensors in a graph that computes in float.

Quantizers remove a ReLU or a clamp where the integer range ends at its bounds: saturation is part of the
function. A tensor with QParams is therefore clamped to ``scale * (quant_min - zero_point)`` and
``scale * (quant_max - zero_point)``, on each side that the op which makes it can reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, QParams, TensorNode
from tmconvert.ir.emitter import Definitions, GraphEmitter
from tmconvert.ir.subgraphs import nested
from tmconvert.ir.tree import leaves_of, replaced
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Average, Bounded, Clamp, Concatenates, KeepsQparams, SelectsElements

Range = tuple[float, float]
_ALL = (-math.inf, math.inf)
_WITHIN = (KeepsQparams, SelectsElements, Average, Concatenates)
_OVERSHOOTS = ("aten::upsample_bicubic2d",)
_REQUANTIZE = "tm::requantize"
_IN_INTEGERS = "TFLite"  # source of QParams of inputs that are integers in the file


def keep_saturation(graph: InternalGraph, catalogue: Definitions) -> int:
    """Inserts clamps into a normalized graph, and returns their number.

    A clamped tensor hands its name and its QParams to the result of its clamp.

    >>> keep_saturation(graph, catalogue)  # doctest: +SKIP
    2
    """
    return sum(_keep_in(each, catalogue) for each in list(nested(graph)))


def _keep_in(graph: InternalGraph, catalogue: Definitions) -> int:
    found: dict[TensorNode, Range] = {}
    count = 0
    for node in graph.inputs:
        if isinstance(node, TensorNode) and node.qparams is not None and node.qparams.source == _IN_INTEGERS:
            _clamp_input(graph, catalogue, node, _ends(node.qparams))
            count += 1
    for expr in list(graph):
        for node in expr.outputs:
            if not isinstance(node, TensorNode) or node.type.dtype.kind != "f":
                continue
            own = _range_of(expr, node, found)
            qparams = node.qparams
            if qparams is None or qparams.inferred or not graph.is_used(node):
                found[node] = own
                continue
            low, high = _ends(qparams)
            step = np.array(qparams.scale, np.float64)
            sides = (bool(np.any(own[0] < low - step)), bool(np.any(own[1] > high + step)))
            made = _clamp(graph, catalogue, node, (low, high), sides) if any(sides) else node
            count += made is not node
            found[made] = max(own[0], float(np.min(low))), min(own[1], float(np.max(high)))
    return count


def _clamp_input(
    graph: InternalGraph, catalogue: Definitions, node: TensorNode, ends: tuple[np.ndarray, np.ndarray]
) -> None:
    """Clamps an input, which the source takes in integers, for all its users."""
    users, is_output = node.users, graph.is_output(node)
    g = GraphEmitter(graph, catalogue, made_by="keep_saturation", name=node.name, before=graph.first)
    made = g.call("aten::clamp", node, float(ends[0][0]), float(ends[1][0]))
    made.qparams = node.qparams
    for user in users:
        graph.relink(user, replaced(user.args, node, made), replaced(user.kwargs, node, made))
    if is_output:
        graph.set_result(replaced(graph.result, node, made))


def _ends(qparams: QParams) -> tuple[np.ndarray, np.ndarray]:
    """Returns the smallest and the largest real value of each channel."""
    scale, zero = np.array(qparams.scale, np.float32), np.array(qparams.zero_point, np.float32)
    low, high = ((np.float32(end) - zero) * scale for end in (qparams.quant_min, qparams.quant_max))
    return low, high


def _clamp(
    graph: InternalGraph,
    catalogue: Definitions,
    node: TensorNode,
    ends: tuple[np.ndarray, np.ndarray],
    sides: tuple[bool, bool],
) -> TensorNode:
    """Inserts a clamp after ``node``, for all its users, and returns its result."""
    expr, name = node.expr, node.name
    assert expr is not None
    users, is_output = node.users, graph.is_output(node)
    is_same = isinstance(expr, CallFunction) and expr.function == _REQUANTIZE
    made = expr.args[0] if is_same else node
    g = GraphEmitter(
        graph, catalogue, source=expr.source, made_by="keep_saturation", name=name, before=expr.next
    )
    axis = None if node.qparams is None else node.qparams.channel_axis
    if axis is None:
        low, high = (float(end[0]) if side else None for end, side in zip(ends, sides, strict=True))
        made = (
            g.call("aten::relu", made)
            if (low, high) == (0.0, None)
            else g.call("aten::clamp", made, low, high)
        )
    else:
        shape = [-1 if each == axis else 1 for each in range(node.type.rank)]
        least, most = (
            g.constant(end.reshape(shape)) if side else None for end, side in zip(ends, sides, strict=True)
        )
        made = made if least is None else g.call("aten::maximum", made, least)
        made = made if most is None else g.call("aten::minimum", made, most)
    for user in users:
        graph.relink(user, replaced(user.args, node, made), replaced(user.kwargs, node, made))
    if is_output:
        graph.set_result(replaced(graph.result, node, made))
    made.qparams, node.qparams = node.qparams, None
    if is_same:
        graph.remove(expr)
    else:
        graph.rename(node, graph.free_name(f"{name}_unclamped"))
    graph.rename(made, name)
    return made


def _range_of(expr: Any, node: TensorNode, found: Mapping[TensorNode, Range]) -> Range:
    """Returns bounds of the elements of ``node``, by the op that makes it and the bounds of its operands."""
    if isinstance(expr, Constant):
        if node.qparams is None or node.type.size == 0:
            return _ALL
        values = np.asarray(expr.value)
        return float(values.min()), float(values.max())
    if not isinstance(expr, CallFunction):
        return _ALL
    bounded = trait_of(expr, Bounded)
    if bounded is not None:
        return bounded.low, bounded.high
    operands = [found.get(each, _ALL) for each in leaves_of(TensorNode, expr.args)]
    clamp = trait_of(expr, Clamp)
    if clamp is not None and operands:
        low, high = clamp.bounds(expr.kwargs)
        return _clamped(operands[0], low, high)
    if expr.function == _REQUANTIZE or (
        expr.function not in _OVERSHOOTS and any(has_trait(expr, each) for each in _WITHIN)
    ):
        parts = operands if has_trait(expr, Concatenates) else operands[:1]
        low, high = (
            min((each[0] for each in parts), default=-math.inf),
            max((each[1] for each in parts), default=math.inf),
        )
        # a mean of a window may have the zeros of its padding
        return (min(low, 0.0), max(high, 0.0)) if has_trait(expr, Average) else (low, high)
    if expr.function == "aten::add" and len(operands) == 2:
        return operands[0][0] + operands[1][0], operands[0][1] + operands[1][1]
    return _ALL


def _clamped(given: Range, low: float | None, high: float | None) -> Range:
    first, last = (
        min(max(end, -math.inf if low is None else low), math.inf if high is None else high) for end in given
    )
    return first, last
