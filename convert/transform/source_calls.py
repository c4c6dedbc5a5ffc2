"""Inserts replacements of source calls into a source graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    GetAttr,
    InternalGraph,
    ModuleNode,
    Node,
    TracedModule,
)
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.surgery.insertion import Insertion
from tmconvert.transform.match import value_inputs


def copied(g: Insertion, replacement: InternalGraph, values: Sequence[object]) -> list[Any]:
    """Inserts the calls of a graph for values of its inputs, and returns its results."""
    mapped: dict[Any, Any] = dict(zip(value_inputs(replacement), values, strict=True))

    def value_of(leaf: object) -> Any:
        return mapped[leaf] if isinstance(leaf, Node) else leaf

    for expr in replacement:
        if isinstance(expr, Constant):
            mapped[expr.outputs[0]] = g.constant(expr.value)
            continue
        if isinstance(expr, GetAttr):
            mapped[expr.outputs[0]] = _module(g, expr) if expr.outputs[0].is_module else _parameter(g, expr)
            continue
        args, kwargs = map_leaves(value_of, (expr.args, expr.kwargs))
        mapped.update(zip(expr.outputs, leaves(_called(g, expr, args, kwargs)), strict=True))
    return [mapped[node] for node in replacement.outputs]


def _module(g: Insertion, expr: GetAttr) -> TracedModule | str:
    """Returns the module's path in the model, else in the replacement, which a call then adds."""
    module: Any = expr.outputs[0]
    owner: Any = g.graph.inputs[0]
    own = owner.owner.children.get(expr.name)
    is_same = own is not None and own.class_name == module.owner.class_name
    return expr.name if is_same else module.owner


def _parameter(g: Insertion, expr: GetAttr) -> Any:
    """Adds what the replacement reads to the module of the graph, and returns its node."""
    holder: Any = expr.args[0]
    owner: Any = g.graph.inputs[0]
    return g.parameter(holder.owner.get(expr.name), owner.owner.free_attribute(expr.name))


def _called(g: Insertion, expr: object, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(expr, CallFunction):
        return g.call(expr.function, *args, **kwargs)
    assert isinstance(expr, CallMethod)
    if isinstance(expr.args[0], ModuleNode):
        module: Any = args[0]
        return g.call_module(module, *args[1:], **kwargs)
    return g.call_method(expr.method, *args, **kwargs)
