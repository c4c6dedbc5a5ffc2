"""Patterns and replacements: functions of ``g`` and values, functions of torch tensors, texts and graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.errors.suggestions import check_op
from tmconvert.errors.values import type_and_value
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.surgery import active
from tmconvert.symbolics.op import Attribute, Op
from tmconvert.transform.match import ANY, Wildcard
from tmconvert.transform.torch_values import called_with_torch_values

Function = Callable[..., Any]


_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "pow": "pow",
    "matmul": "matmul",
    "neg": "neg",
    "abs": "abs",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
}


class Operators:
    """Operators on the values of a pattern: the ops of the catalogue that compute them."""

    def __init__(self, g: PatternCalls) -> None:
        self.g = g

    def __enter__(self) -> Operators:
        active.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        active.pop()

    def knows_method(self, name: str) -> bool:
        return False

    def call_method(self, method: str, *values: object) -> Any:
        name = method.strip("_")
        reflected = name.removeprefix("r")
        op = _OPERATORS.get(name) or _OPERATORS.get(reflected)
        if op is None:
            raise UsageError("TM6054", f"a pattern cannot have the operator {method}: write g.call(...)")
        return self.g.call(f"aten::{op}", *(values if name in _OPERATORS else reversed(values)))


class PatternCalls:
    """The ``g`` of a pattern: records calls without types.

    ``g.call`` takes ops of the catalogue, by their signature: an omitted attribute has its default, ``...``
    as the last argument matches any values of all that follow, ``g.any`` any value. Other names are functions
    of the source framework.
    """

    any = ANY

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        self.graph = InternalGraph("pattern")
        self.catalogue = catalogue

    def input(self, name: str) -> TensorNode:
        node = TensorNode(self.graph.free_name(name))
        self.graph.add_input(node)
        return node

    def call(self, op: str, *args: object, results: int = 1, **attributes: object) -> Any:
        """Returns the result of a function or op, or a list where there are several ``results``."""
        check_op(op, self.catalogue)
        if op in self.catalogue:
            tensors, attributes = self._bound(self.catalogue[op], list(args), attributes)
            args = tuple(tensors)
        return self._recorded(lambda result: CallFunction(op, args, attributes, result=result), results)

    def call_method(self, method: str, *args: object, results: int = 1, **kwargs: object) -> Any:
        """Returns the result of a method of the tensor ``args[0]``."""
        return self._recorded(lambda result: CallMethod(method, args, kwargs, result=result), results)

    def call_module(self, class_name: str, *args: object, results: int = 1, **kwargs: object) -> Any:
        """Returns the result of a module of a class, such as "megengine.module.conv.Conv2d"."""
        module = ModuleNode("", class_name)
        return self._recorded(
            lambda result: CallMethod("__call__", (module, *args), kwargs, result=result), results
        )

    def constant(self, value: Any, dtype: Any = None) -> TensorNode:
        """Returns a constant; one of a single element matches every constant whose elements all equal it."""
        array = np.asarray(value, dtype)
        node = TensorNode(self.graph.free_name("constant"), array.shape, array.dtype)
        self.graph.insert(Constant(array, result=node))
        return node

    def _recorded(self, make: Callable[[Any], Any], results: int) -> Any:
        nodes = [TensorNode(self.graph.free_name("v")) for _ in range(results)]
        self.graph.insert(make(nodes[0] if results == 1 else tuple(nodes)))
        return nodes[0] if results == 1 else nodes

    def record(self, expr: Any) -> Any:
        """Records a call, and returns its result."""
        node = TensorNode(self.graph.free_name("v"))
        self.graph.insert(expr.like(expr.args, expr.kwargs, node))
        return node

    def _bound(self, op: Op, given: list[Any], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        is_open = bool(given) and given[-1] is ...
        given = given[:-1] if is_open else given
        tensors: list[Any] = []
        attributes: dict[str, Any] = {}
        for argument in op.args:
            is_given = bool(given) or argument.name in named
            value = given.pop(0) if given else named.pop(argument.name, ANY if is_open else None)
            if not isinstance(argument, Attribute):
                tensors.append(map_leaves(self._tensor, value))
            elif not is_given and not is_open:
                attributes[argument.name] = argument.default
            elif value is None or any(isinstance(leaf, (Node, Wildcard)) for leaf in leaves(value)):
                attributes[argument.name] = value
            else:
                attributes[argument.name] = argument.convert(value)
        if given or named:
            extra = ", ".join(map(str, [*given, *named]))
            raise UsageError("TM6054", f"{op.name} in a pattern has too many arguments: {extra}")
        return tensors, attributes

    def _tensor(self, value: object) -> Any:
        is_number = isinstance(value, (bool, int, float, np.ndarray))
        return self.constant(value) if is_number else value


def pattern_of(pattern: object, catalogue: Mapping[str, Op]) -> InternalGraph:
    """Returns the graph of a pattern. Raises UsageError TM6052, TM6054; LoadError TM1101 for a text."""
    if isinstance(pattern, TracedModule) and pattern.graph is not None:
        return pattern.graph
    if isinstance(pattern, InternalGraph):
        return pattern
    if isinstance(pattern, str):
        return parse_graph(pattern)
    if not callable(pattern):
        raise UsageError(
            "TM6054", f"a pattern must be a function, a text or a graph, got {type_and_value(pattern)}"
        )
    g = PatternCalls(catalogue)
    names = parameter_names(pattern)
    is_of_g = takes_g(pattern)
    inputs = [g.input(name) for name in (names[1:] if is_of_g else names)]
    if is_of_g:
        with Operators(g):
            result = pattern(g, *inputs)
    else:
        result = called_with_torch_values(pattern, g, inputs)
    for leaf in leaves(result):
        if not isinstance(leaf, Node):
            raise UsageError("TM6054", f"a pattern must return values, got {type_and_value(leaf)}")
    g.graph.set_result(tuple(result) if isinstance(result, list) else result)
    return g.graph


def is_of_catalogue(pattern: InternalGraph, catalogue: Mapping[str, Op]) -> bool:
    """Whether all calls of a pattern are ops of the catalogue."""
    calls = [expr for expr in pattern if not isinstance(expr, Constant)]
    return all(isinstance(call, CallFunction) and call.function in catalogue for call in calls)


def parameter_names(function: Function) -> list[str]:
    """Returns the names of a function's positional parameters. Raises UsageError TM6054 where it has none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise UsageError("TM6054", f"the parameters of {type_and_value(function)} are not known") from None
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        raise UsageError("TM6054", "a pattern or replacement must name its parameters, not take *args")
    return [each.name for each in parameters]


def takes_g(function: Function) -> bool:
    """Whether the first parameter of a function is ``g``, by which it makes calls."""
    return parameter_names(function)[:1] == ["g"]
