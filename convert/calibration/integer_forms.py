"""Tests whether each target has a call in integers, by lowering it alone with placeholder QParams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tmconvert.calibration.placement import Kind
from tmconvert.ir import CallFunction, Constant, InternalGraph, QParams, TensorNode
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import KeepsQparams
from tmconvert.targets.registry import target_named, target_names

# for each kind of tensor QParams that nothing else has
PLACEHOLDERS = {
    "int8": QParams("int8", (0.037,), (3,), -128, 127, source="trial"),
    "int16": QParams("int16", (0.0011,), (0,), -32768, 32767, source="trial"),
    "places": QParams("int16", (0.0017,), (0,), 0, 4095, source="trial"),
}
_MAKER = "integer_forms"
_SMALL = 16  # elements of constants that may matter
# what a node is to be in: a key of QPARAMS, or None for what has no QParams
KindOfNode = Callable[[Any], Kind | None]


class IntegerForms:
    """Tests calls, and caches the result for each op, attributes and types."""

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.catalogue = catalogue
        self.targets = [target_named(name) for name in target_names()]
        self.known: dict[Any, bool] = {}

    def has(self, call: CallFunction, kind_of: KindOfNode, most: int = 1 << 16) -> bool:
        """Whether ``call`` lowers to integer operators only, for tensors of these types, in every target.

        Lookup tables may have at most ``most`` entries.
        """
        floats = [node for node in (*call.inputs, *call.outputs) if _is_float(node)]
        if not any(not isinstance(node.expr, Constant) for node in floats):
            return True
        key = most, *_key(call, kind_of)
        if key not in self.known:
            self.known[key] = all(
                target.has_integer_form(_isolate(call, kind_of), self.catalogue, most)
                for target in self.targets
            )
        return self.known[key]


def _is_float(node: object) -> bool:
    return isinstance(node, TensorNode) and node.dtype == np.float32


def _key(call: CallFunction, kind_of: KindOfNode) -> Any:
    def seen(node: Any) -> Any:
        if node is None:
            return None
        if not isinstance(node.expr, Constant):
            return node.shape, node.dtype, kind_of(node)
        value = np.asarray(node.expr.value)
        return node.shape, node.dtype, value.tobytes() if value.size <= _SMALL else None

    arguments = map_leaves(seen, list(call.args))
    return call.function, repr(arguments), repr(call.kwargs), tuple(map(kind_of, call.outputs))


def _isolate(call: CallFunction, kind_of: KindOfNode) -> InternalGraph:
    """Returns a graph of ``call`` alone; operands and results have QParams of its types."""
    graph, copies = InternalGraph("call"), dict[Any, Any]()
    for node in call.inputs:
        assert isinstance(node, TensorNode)
        if node in copies:
            continue
        duplicate = TensorNode(graph.free_name(node.name), node.shape, node.dtype)
        if isinstance(node.expr, Constant):
            graph.insert(Constant(np.asarray(node.expr.value), None, result=duplicate, made_by=_MAKER))
        else:
            duplicate.qparams = _qparams(node, kind_of)
            graph.add_input(duplicate, made_by=_MAKER)
        copies[node] = duplicate
    for node in call.outputs:
        assert isinstance(node, TensorNode)
        copies[node] = TensorNode(graph.free_name(node.name), node.shape, node.dtype)
        if not has_trait(call, KeepsQparams):
            copies[node].qparams = _qparams(node, kind_of)

    def copy_of(leaf: object) -> Any:
        return None if leaf is None else copies[leaf]

    args, result = map_leaves(copy_of, call.args), map_leaves(copy_of, call.result)
    copied_call = CallFunction(call.function, tuple(args), dict(call.kwargs), result=result, made_by=_MAKER)
    graph.insert(copied_call)
    graph.set_result(tuple(copies[node] for node in call.outputs))
    return graph


def _qparams(node: TensorNode, kind_of: KindOfNode) -> QParams | None:
    kind = kind_of(node) if _is_float(node) else None
    return None if kind is None else replace(PLACEHOLDERS[kind])
