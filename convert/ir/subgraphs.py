"""Subgraphs of control-flow ops: branches of conditionals, steps of loops.

Such a graph is an attribute of a call. It cannot access nodes of the surrounding graph: captured values are
arguments of the call, in the order of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.expr import Constant, Expr, GetAttr
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.tree import Tree, map_leaves

if TYPE_CHECKING:
    from tmconvert.ir.emitter import Emitter, GraphEmitter
    from tmconvert.ir.traced_module import TracedModule


T = TypeVar("T")


def subgraphs_of(expr: Expr) -> list[InternalGraph]:
    """Returns the subgraphs among the attributes of a call."""
    return [value for value in expr.kwargs.values() if isinstance(value, InternalGraph)]


def nested(graph: InternalGraph) -> Iterator[InternalGraph]:
    """Returns ``graph`` and its subgraphs at any depth, the innermost first."""
    for inner in graph.subgraphs:
        yield from nested(inner)
    yield graph


def within(expr: Expr, body: InternalGraph, function: Callable[[], T]) -> T:
    """Calls a function for a subgraph of a call, with the conditions on sizes under which it runs."""
    if expr.kwargs.get("choice") is None:
        return function()
    from tmconvert.ir.symbolic.choices import where

    return where(expr.kwargs["choice"], int(body is expr.kwargs.get("then")), function)


def each_nested(graph: InternalGraph, function: Callable[[InternalGraph], None]) -> None:
    """Calls a function for ``graph`` and its subgraphs at any depth, the innermost first; see ``within``."""
    for expr in list(graph) if graph.subgraphs else ():
        for body in subgraphs_of(expr):
            within(expr, body, partial(each_nested, body, function))
    function(graph)


def fill_body(
    g: GraphEmitter, inputs: Mapping[int, TensorNode], module: TracedModule, given: Sequence[Any]
) -> InternalGraph:
    """Fills the empty subgraph of ``g`` with a call of ``module`` with the tensors and numbers ``given``, in
    ops of the catalogue.

    ``inputs`` has the inputs of the subgraph, by the ids of the corresponding tensors in ``given``; other
    arrays in ``given`` become constants. A complex result is a pair in the result of the graph.
    Raises Refusal.
    """
    from tmconvert.ir.complex_values import Complex, parts_of

    def own(value: Any) -> Any:
        if isinstance(value, Complex):
            return Complex(own(value.real), own(value.imag))
        copy = inputs.get(id(value), value)
        return g.constant(copy) if isinstance(copy, np.ndarray) else copy

    results = emitted(g, module, [own(value) for value in given])
    if not all(isinstance(result, TensorNode) for result in parts_of(results)):
        raise Refusal("a subgraph returns a value that is not a tensor")
    g.graph.set_result(
        tuple(tuple(parts_of([each])) if isinstance(each, Complex) else each for each in results)
    )
    return g.graph


def emitted(g: Emitter, module: TracedModule, given: Sequence[Any]) -> list[Any]:
    """Converts the calls of ``module`` on the values ``given`` of ``g`` to its results. Raises Refusal."""
    flat = flatten_module(module)
    assert flat.graph is not None and flat.vocabulary is not None
    formal = flat.graph.inputs
    if len(formal) != len(given) + 1:
        raise Refusal("the subgraph was recorded with another number of arguments than it is called with")
    values: dict[Node, Any] = {formal[0]: flat}
    values.update(zip(formal[1:], given, strict=True))
    for expr in flat.graph:
        g.begin(expr.outputs[0].name if expr.outputs else "body", expr.source)
        if isinstance(expr, Constant):
            result = _captured(g, expr.value, expr.name)
        elif isinstance(expr, GetAttr):
            path = expr.name if expr.args[0] is formal[0] else None
            result = _captured(g, values[expr.args[0]].get(expr.name), path)
        else:
            args, kwargs = map_leaves(
                lambda leaf: values[leaf] if isinstance(leaf, Node) else leaf, (expr.args, expr.kwargs)
            )
            try:
                result = flat.vocabulary.apply(g, expr, args, kwargs)
            except Refusal as refusal:
                raise Refusal(f"at {expr.source}: {refusal.reason}", refusal.help) from refusal
        _bind(expr.result, result, values)
    return [values[node] for node in flat.graph.outputs]


def inlined(g: Emitter, body: InternalGraph, inputs: Sequence[Any]) -> list[Any]:
    """Inlines a subgraph for values of ``g``, and returns its results."""
    values: dict[Node, Any] = dict(zip(body.inputs, inputs, strict=True))
    for expr in body:
        if isinstance(expr, Constant):
            result = _captured(g, expr.value, expr.name)
        else:
            args = map_leaves(lambda leaf: values[leaf] if isinstance(leaf, Node) else leaf, expr.args)
            own = map_leaves(
                lambda leaf: leaf.copy() if isinstance(leaf, InternalGraph) else leaf, expr.kwargs
            )
            result = g.call(expr.function, *args, **own)  # type: ignore[attr-defined]
        _bind(expr.result, result, values)
    return [values[node] for node in body.outputs]


def _captured(g: Emitter, value: Any, name: str | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return g.parameter(value, name) if name else g.constant(value)


def _bind(structure: Tree, result: Any, values: dict[Node, Any]) -> None:
    if isinstance(structure, Node):
        values[structure] = result
    elif isinstance(structure, (dict, list, tuple)):
        children = list(structure.values()) if isinstance(structure, dict) else list(structure)
        if not isinstance(result, (list, tuple)) or len(result) != len(children):
            raise Refusal("the call was recorded with another number of results than its subgraph has")
        for child, part in zip(children, result, strict=True):
            _bind(child, part, values)
