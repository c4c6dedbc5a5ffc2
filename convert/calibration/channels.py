"""Channel groups for cross-layer equalization.

Every channel of a tensor belongs to a numbered group; the channels of a group are scaled by one factor. The
results of a layer with constant weights begin new groups, and its weights absorb the factors of its operand.
Between layers a factor passes through calls that are homogeneous, f(s x) = s f(x) for s > 0, and compute each
channel by itself, and through clamps, whose bound becomes one per channel. The factors of all other channels
are 1, as are those of inputs and outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import integer_weights, is_product
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import (
    Clamp,
    Concatenates,
    Homogeneous,
    Permuted,
    Reduction,
    Selected,
    Trait,
    View,
)


@dataclass(frozen=True)
class Labels:
    """``numbers`` of the channel groups along ``axis`` of a tensor."""

    axis: int
    numbers: np.ndarray


@dataclass
class Channels:
    """``labels`` of tensors; ``held`` states whether the factor of a group is fixed to 1.

    ``layers`` are the calls with weights, ``after`` those whose operands have labels; ``clamps`` are the
    calls with an upper bound. The results of all of them have labels.
    """

    labels: dict[TensorNode, Labels] = field(default_factory=dict)
    held: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    layers: list[CallFunction] = field(default_factory=list)
    after: list[CallFunction] = field(default_factory=list)
    clamps: list[CallFunction] = field(default_factory=list)


def channels(graph: InternalGraph) -> Channels:
    """Returns the channels of ``graph``, with group numbers starting at 0."""
    return _Walk(graph).run()


class _Walk:
    def __init__(self, graph: InternalGraph) -> None:
        self.graph, self.found, self.count = graph, Channels(), 0
        self.equal: list[tuple[np.ndarray, np.ndarray]] = []
        self.held: list[np.ndarray] = []

    def run(self) -> Channels:
        for expr in self.graph:
            if isinstance(expr, CallFunction):
                self._visit(expr)
        for node in self.graph.outputs:
            self.hold(node)
        return self._renumber()

    def _visit(self, call: CallFunction) -> None:
        if integer_weights(call) is not None:
            self._layer(call)
            return
        labels = _result(call, self)
        if labels is None:
            for node in call.inputs:
                self.hold(node)
        elif len(call.outputs) == 1:
            self.found.labels[call.output] = labels

    def _layer(self, call: CallFunction) -> None:
        x, *parameters = call.args
        result = call.output
        assert isinstance(result, TensorNode) and isinstance(x, TensorNode)
        weights = integer_weights(call)
        assert weights is not None
        axis = weights.channel_axis(len(result.type.shape))
        labels = self.found.labels.get(x)
        is_matrix = len(parameters[0].type.shape) > 1
        if not is_matrix or not all(node is None or self._is_own(node) for node in parameters):
            self.hold(x)
            return
        if labels is not None and labels.axis == axis:
            self.found.after.append(call)
        else:
            self.hold(x)
        extent = result.type.shape[axis]
        self.found.labels[result] = Labels(axis, np.arange(self.count, self.count + extent))
        self.count += extent
        self.found.layers.append(call)

    def _is_own(self, node: Any) -> bool:
        """Whether a constant has only one use."""
        return isinstance(node.expr, Constant) and self.graph.use_count(node) == 1

    def hold(self, node: object) -> None:
        if isinstance(node, TensorNode) and node in self.found.labels:
            self.held.append(self.found.labels[node].numbers)

    def join(self, first: Labels | None, second: Labels | None) -> Labels | None:
        """Merges two labels: returns the first, whose groups are now those of the second."""
        if first is None or second is None or first.axis != second.axis:
            return None
        if first.numbers.shape != second.numbers.shape:
            return None
        self.equal.append((first.numbers, second.numbers))
        return first

    def label(self, node: Any) -> Labels | None:
        return self.found.labels.get(node)

    def _renumber(self) -> Channels:
        """Renumbers the groups so that merged ones have the lowest number."""
        lowest = components(self.count, self.equal)
        held = np.zeros(self.count, bool)
        for numbers in self.held:
            held[lowest[numbers]] = True
        made = {node: Labels(each.axis, lowest[each.numbers]) for node, each in self.found.labels.items()}
        return replace(self.found, labels=made, held=held)


def components(count: int, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns for each of ``count`` numbers the lowest of its connected component; ``pairs`` are edges."""
    lowest = np.arange(count)
    if not pairs:
        return lowest
    first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
    while True:
        before = lowest.copy()
        least = np.minimum(lowest[first], lowest[second])
        for side in (first, second):
            np.minimum.at(lowest, side, least)
            np.minimum.at(lowest, before[side], least)
        lowest = lowest[lowest]
        if np.array_equal(lowest, before):
            return lowest


# ---- what factors go through

Rule = Callable[[CallFunction, _Walk], "Labels | None"]


def _keep_labels(call: CallFunction, walk: _Walk) -> Labels | None:
    """Ops for which scaling channels of operands (or of several of one shape) scales those of the result."""
    homogeneous = trait_of(call, Homogeneous)
    assert homogeneous is not None
    if homogeneous.operands > 1:
        return _both(call, walk)
    labels = walk.label(call.args[0])
    if labels is None or homogeneous.channels is None:
        return labels
    order = homogeneous.channels(labels.axis, labels.numbers.size, **call.kwargs)
    return None if order is None else Labels(labels.axis, labels.numbers[order])


def _over_other_axes(call: CallFunction, walk: _Walk) -> Labels | None:
    """Reductions over axes other than the channel axis."""
    labels, (x, *_), dims = walk.label(call.args[0]), call.args, call.kwargs["dim"]
    rank = len(x.type.shape)
    if labels is None or dims is None:
        return None
    reduced = {axis % rank for axis in dims}
    if labels.axis in reduced:
        return None
    before = 0 if call.kwargs["keepdim"] else sum(axis < labels.axis for axis in reduced)
    return Labels(labels.axis - before, labels.numbers)


def _view_labels(call: CallFunction, walk: _Walk) -> Labels | None:
    """Reshapes that keep channels intact, alone or with the elements after them."""
    labels, view = walk.label(call.args[0]), trait_of(call, View)
    if labels is None or view is None:
        return None
    shape, steps = call.args[0].type.shape, view.of(call)
    for step in steps:
        if labels is None or isinstance(step, Selected):
            return None
        if isinstance(step, Permuted):
            labels = Labels(list(step.order).index(labels.axis), labels.numbers)
            shape = tuple(shape[axis] for axis in step.order)
        else:
            new = call.output.type.shape if step is steps[-1] else step.shape
            labels, shape = _reshape_labels(labels, shape, new), tuple(new)
    return labels


def _reshape_labels(labels: Labels, old: Sequence[int], new: Sequence[int]) -> Labels | None:
    before = math.prod(old[: labels.axis])
    for axis, extent in enumerate(new):
        if math.prod(new[:axis]) == before and extent % old[labels.axis] == 0 and extent:
            return Labels(axis, labels.numbers.repeat(extent // old[labels.axis]))
    return None


def _clamp(call: CallFunction, walk: _Walk) -> Labels | None:
    """Clamps from 0 to an optional bound."""
    low, high = ends(call)
    labels = walk.label(call.args[0])
    if low != 0 or labels is None:
        return None
    if high is not None:
        walk.found.clamps.append(call)
    return labels


def ends(call: CallFunction) -> tuple[Any, Any]:
    """Returns the lower and upper bound of a clamp; None for a missing one, and for other ops."""
    clamp = trait_of(call, Clamp)
    return (None, None) if clamp is None else clamp.bounds(call.kwargs)


def _both(call: CallFunction, walk: _Walk) -> Labels | None:
    """Binary ops on operands of one shape: channels of both have the same factor."""
    x, other = call.args
    if not all(isinstance(node, TensorNode) for node in call.args) or x.type != other.type:
        return None
    return walk.join(walk.label(x), walk.label(other))


def _gate_labels(call: CallFunction, walk: _Walk) -> Labels | None:
    """Products: the larger operand is scaled; the other keeps its channels."""
    x, other = call.args
    if walk.label(x) is None or x.type != call.output.type:
        x, other = other, x
    if not isinstance(x, TensorNode) or x.type != call.output.type:
        return None
    walk.hold(other)
    return walk.label(x)


def _cat(call: CallFunction, walk: _Walk) -> Labels | None:
    parts = [walk.label(node) for node in call.inputs]
    axes = {part.axis for part in parts if part is not None}
    if None in parts or len(axes) != 1:
        return None
    axis = call.kwargs["dim"] % len(call.output.type.shape)
    if {axis} == axes:
        return Labels(axis, np.concatenate([part.numbers for part in parts if part is not None]))
    joined = parts[0]
    for part in parts[1:]:
        joined = walk.join(joined, part)
    return joined


# by the first of these traits that the op has
RULES: dict[type[Trait], Rule] = {
    Clamp: _clamp,
    Reduction: _over_other_axes,
    Homogeneous: _keep_labels,
    View: _view_labels,
    Concatenates: _cat,
}


def _result(call: CallFunction, walk: _Walk) -> Labels | None:
    if is_product(call):
        return _gate_labels(call, walk)
    return next((rule(call, walk) for trait, rule in RULES.items() if has_trait(call, trait)), None)
