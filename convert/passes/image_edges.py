"""Finds the inputs and outputs of a graph that are images."""

from __future__ import annotations

from collections.abc import Iterator

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Permuted, Reshaped, Spatial, View

_LAST_TO_FIRST, _FIRST_TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def name_channels_first(graph: InternalGraph) -> None:
    """Gives the names of tensors that are permuted to channels-last to the tensors that are permuted.

    Targets with channels first drop these permutations, and keep the names of a channels-last source so.
    """
    for expr in list(graph):
        if not isinstance(expr, CallFunction) or expr.function != "aten::permute":
            continue
        first, last = expr.args[0], expr.output
        is_inner = isinstance(first, TensorNode) and isinstance(first.expr, CallFunction)
        if is_inner and _permutation(expr) == _FIRST_TO_LAST and not graph.is_output(last):
            name = last.name
            graph.rename(last, graph.free_name(f"{name}_nhwc"))
            if graph.node_called(name) is None:
                graph.rename(first, name)


def images_of(graph: InternalGraph) -> dict[str, str]:
    """Returns the layouts of inputs and outputs of a normalized graph that are images, by name.

    "NCHW" are operands and results of spatial ops, also through ops that keep the shape; "NHWC" is what is
    permuted to such a tensor, or permuted from one.
    """
    known: dict[str, str] = {}
    for node in (*graph.inputs, *graph.outputs):
        if _is_image(node):
            known[node.name] = "NCHW"
        elif isinstance(node, TensorNode) and any(map(_is_image, _channels_first(node))):
            known[node.name] = "NHWC"
    return known


def _channels_first(node: TensorNode) -> Iterator[TensorNode]:
    """Yields the tensors of which ``node``, also after ops that keep the shape, is the permutation with
    channels last.
    """
    for value in _of_equal_shape(node):
        for call, other in _neighbours(value):
            order = _LAST_TO_FIRST if call.args[0] is value else _FIRST_TO_LAST
            if _permutation(call) == order:
                yield other


def _of_equal_shape(node: TensorNode) -> Iterator[TensorNode]:
    """Yields ``node``, and the tensors of its shape that ops which move no axes lead to."""
    waiting, seen = [node], {node}
    while waiting:
        value = waiting.pop()
        yield value
        for call, other in _neighbours(value):
            is_same = (
                other.shape is not None and node.shape is not None and tuple(other.shape) == tuple(node.shape)
            )
            if is_same and other not in seen and not _moves_axes(call):
                seen.add(other)
                waiting.append(other)


def _permutation(call: CallFunction) -> tuple[int, ...] | None:
    view = trait_of(call, View)
    steps = [] if view is None else list(view.of(call))
    ends = [list(node.shape or ()) for node in (*call.inputs, *call.outputs) if isinstance(node, TensorNode)]
    steps = [each for each in steps if not (isinstance(each, Reshaped) and list(each.shape) in ends)]
    return tuple(steps[0].order) if len(steps) == 1 and isinstance(steps[0], Permuted) else None


def _is_image(node: object) -> bool:
    if not isinstance(node, TensorNode) or node.shape is None or len(node.shape) != 4:
        return False
    return any(
        has_trait(call, Spatial) and bool(call.args) and call.args[0] in (value, other)
        for value in _of_equal_shape(node)
        for call, other in _neighbours(value)
    )


def _neighbours(value: TensorNode) -> Iterator[tuple[CallFunction, TensorNode]]:
    """Yields the calls that use or compute a value, with each of their other operands and results."""
    for call in (*value.users, value.expr):
        if isinstance(call, CallFunction):
            for other in (*call.inputs, *call.outputs):
                if isinstance(other, TensorNode) and other is not value:
                    yield call, other


def _moves_axes(call: CallFunction) -> bool:
    return has_trait(call, View)
