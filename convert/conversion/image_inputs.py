"""Finds the inputs and outputs of a graph that are images."""

from __future__ import annotations

from collections.abc import Iterator

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import Spatial, View


def images_of(graph: InternalGraph) -> set[str]:
    """Returns the names of inputs and outputs of a normalized graph whose layout is NCHW.

    These are operands and results of spatial ops, also through ops that keep the shape.
    """
    return {node.name for node in (*graph.inputs, *graph.outputs) if _is_image(node)}


def _is_image(node: object) -> bool:
    if not isinstance(node, TensorNode) or node.shape is None or len(node.shape) != 4:
        return False
    waiting, seen = [node], {node}
    while waiting:
        value = waiting.pop()
        for call, other in _neighbours(value):
            if has_trait(call, Spatial) and call.args and call.args[0] in (value, other):
                return True
            is_same = other.shape is not None and tuple(other.shape) == tuple(node.shape)
            if is_same and other not in seen and not _moves_axes(call):
                seen.add(other)
                waiting.append(other)
    return False


def _neighbours(value: TensorNode) -> Iterator[tuple[CallFunction, TensorNode]]:
    """Yields the calls that use or compute a value, with each of their other operands and results."""
    for call in (*value.users, value.expr):
        if isinstance(call, CallFunction):
            for other in (*call.inputs, *call.outputs):
                if isinstance(other, TensorNode) and other is not value:
                    yield call, other


def _moves_axes(call: CallFunction) -> bool:
    return has_trait(call, View)
