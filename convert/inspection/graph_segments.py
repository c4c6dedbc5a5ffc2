"""Runs the part of a graph between tensors that another model has, too, and one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.inspection.compared_models import Catalogue, computed, key_of
from tmconvert.ir import CallFunction, Expr, InternalGraph, TensorNode
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import Clamp


class Segments:
    """Parts of a normalized graph.

    ``known`` are the tensors of the other model: their names in it, by key. ``orders`` are the permutations
    from their layout to that of the graph, ``factors`` those of channels by which they are larger than in the
    graph, which are set as they become known.
    """

    def __init__(self, graph: InternalGraph, catalogue: Catalogue, known: Mapping[str, str]) -> None:
        self.graph, self.catalogue = graph, catalogue
        self.inputs: dict[Any, np.ndarray] = {}
        self.orders: dict[str, tuple[int, ...] | None] = {}
        self.factors: dict[str, np.ndarray] = {}
        self._place = {expr: number for number, expr in enumerate(graph)}
        nodes = [node for expr in graph if isinstance(expr, CallFunction) for node in expr.outputs]
        self._nodes = _by_key([node for node in nodes if _is_float(node)], known)
        self._known = {node: known[key] for key, node in self._nodes.items()}
        self._by_other = {other: node for node, other in self._known.items()}

    def set_inputs(self, arrays: Sequence[np.ndarray]) -> None:
        """Sets the inputs of the graph."""
        nodes = [node for node in self.graph.inputs if isinstance(node, TensorNode)]
        self.inputs = dict(zip(nodes, arrays, strict=True))

    def operands_of(self, names: Iterable[str]) -> list[str]:
        """Returns the tensors of the other model, by its names, from which ``names`` are computed."""
        found: dict[str, None] = {}
        for name in names:
            if name in self._by_other:
                _, operands = self._part(self._by_other[name])
                found.update(dict.fromkeys(self._known[node] for node in operands))
        return list(found)

    def predicted(self, key: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the tensor of this key in the graph for operands that the other model computed.

        Raises KeyError for an operand that is missing, and what operations raise for operands of other
        shapes.
        """
        target = self._nodes[key]
        exprs, operands = self._part(target)
        at_hand: dict[Any, Any] = dict(self.inputs)
        at_hand.update({node: self._operand(node, values) for node in operands})
        sizes: dict[str, int] = {}
        for expr in exprs:
            at_hand.update(zip(expr.outputs, computed(expr, at_hand, self.catalogue, sizes), strict=True))
        return np.asarray(at_hand[target])

    def clamped(self, key: str, array: np.ndarray) -> np.ndarray:
        """Applies the clamp that is the only user of the tensor of this key, if it has such a user.

        Integers need not represent what it removes.
        """
        node = self._nodes[key]
        users = list(node.users)
        if len(users) != 1 or not isinstance(users[0], CallFunction):
            return array
        if not has_trait(users[0], Clamp) or users[0].args[0] is not node or len(users[0].inputs) != 1:
            return array
        (made,) = computed(users[0], {node: array}, self.catalogue, {})
        return np.asarray(made)

    def _operand(self, node: Any, values: Mapping[str, np.ndarray]) -> np.ndarray:
        other = self._known[node]
        array, order = values[other], self.orders.get(other)
        if order is not None:
            array = array.transpose(order)
        shape = tuple(map(int, node.shape)) if node.shape is not None else array.shape
        if array.shape != shape and array.size == np.prod(shape, dtype=int):
            array = array.reshape(shape)
        if other in self.factors:
            array = array / self.factors[other]
        return np.asarray(array, node.dtype, order="C")

    def _part(self, target: Any) -> tuple[list[Expr], list[Any]]:
        """Returns the expressions that compute ``target`` from tensors of the other model, in order."""
        exprs: set[Any] = set()
        operands: dict[Any, None] = {}
        waiting = [target.expr]
        while waiting:
            expr = waiting.pop()
            if expr in exprs:
                continue
            exprs.add(expr)
            for node in expr.inputs:
                if node in self._known:
                    operands[node] = None
                elif node not in self.inputs and node.expr is not None:
                    waiting.append(node.expr)
        return sorted((each for each in exprs if each in self._place), key=self._place.__getitem__), list(
            operands
        )


def _by_key(nodes: Sequence[Any], known: Mapping[str, str]) -> dict[str, Any]:
    """Returns the computed tensors by key; a name that a constant has taken has a number after it."""
    found = {key: node for node in nodes if (key := key_of(node.name)) in known}
    for key in known:
        if key not in found:
            numbered = re.compile(re.escape(key) + r"_\d+")
            same = [
                node for node in nodes if numbered.fullmatch(node.name) and key_of(node.name) not in known
            ]
            if len(same) == 1:
                found[key] = same[0]
    return found


def _is_float(node: Any) -> bool:
    return isinstance(node, TensorNode) and node.dtype is not None and node.dtype.kind == "f"
