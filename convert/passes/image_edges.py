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
    parts = _Parts()
    for node in (*graph.inputs, *graph.outputs):
        if isinstance(node, TensorNode):
            if parts.is_image(node):
                known[node.name] = "NCHW"
            elif parts.has_channels_last(node):
                known[node.name] = "NHWC"
    return known


class _Parts:
    """The parts of a graph whose tensors have one shape, and are connected by ops that move no axes.

    Each part is found once, so that the time grows with the graph, not with its edges squared.
    """

    def __init__(self) -> None:
        self._calls: dict[TensorNode, dict[CallFunction, None]] = {}
        self._images: dict[int, bool] = {}  # by the identity of the calls
        self._last: dict[int, bool] = {}

    def calls(self, node: TensorNode) -> dict[CallFunction, None]:
        """Returns the calls around the part of ``node``; one dict for all its tensors."""
        if node not in self._calls:
            found: dict[CallFunction, None] = {}
            waiting, self._calls[node] = [node], found
            while waiting:
                value = waiting.pop()
                for call in (*value.users, value.expr):
                    if not isinstance(call, CallFunction) or call in found:
                        continue
                    found[call] = None
                    for other in () if has_trait(call, View) else _tensors_of(call):
                        if other not in self._calls and _have_one_shape(other, node):
                            self._calls[other] = found
                            waiting.append(other)
        return self._calls[node]

    def is_image(self, node: TensorNode) -> bool:
        """Whether a spatial op takes or makes a tensor of the part."""
        if node.shape is None or len(node.shape) != 4:
            return False
        calls = self.calls(node)
        if id(calls) not in self._images:
            self._images[id(calls)] = any(has_trait(call, Spatial) and _has_operand(call) for call in calls)
        return self._images[id(calls)]

    def has_channels_last(self, node: TensorNode) -> bool:
        """Whether a tensor of the part is the permutation of an image to channels last."""
        calls = self.calls(node)
        if id(calls) not in self._last:
            self._last[id(calls)] = any(self._permutes_image(call, calls) for call in calls)
        return self._last[id(calls)]

    def _permutes_image(self, call: CallFunction, calls: dict[CallFunction, None]) -> bool:
        order = _permutation(call)
        return any(
            order == (_LAST_TO_FIRST if call.args[0] is value else _FIRST_TO_LAST) and self.is_image(other)
            for value in (_tensors_of(call) if order and call.args else ())
            if self._calls.get(value) is calls
            for other in _tensors_of(call)
            if other is not value
        )


def _has_operand(call: CallFunction) -> bool:
    return bool(call.args) and isinstance(call.args[0], TensorNode)


def _have_one_shape(one: TensorNode, other: TensorNode) -> bool:
    return one.shape is not None and other.shape is not None and tuple(one.shape) == tuple(other.shape)


def _tensors_of(call: CallFunction) -> Iterator[TensorNode]:
    return (each for each in (*call.inputs, *call.outputs) if isinstance(each, TensorNode))


def _permutation(call: CallFunction) -> tuple[int, ...] | None:
    view = trait_of(call, View)
    steps = [] if view is None else list(view.of(call))
    ends = [list(node.shape or ()) for node in (*call.inputs, *call.outputs) if isinstance(node, TensorNode)]
    steps = [each for each in steps if not (isinstance(each, Reshaped) and list(each.shape) in ends)]
    return tuple(steps[0].order) if len(steps) == 1 and isinstance(steps[0], Permuted) else None
