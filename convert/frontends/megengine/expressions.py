"""Builds an InternalGraph from the inert records of a pickle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.frontends.megengine.arguments import merged, unflatten_values
from tmconvert.frontends.megengine.pickle.budget import DAMAGED, OVER_LIMIT, Budget, kind, number, text
from tmconvert.frontends.megengine.pickle.stand_ins import GlobalRef, Instance, Tensor
from tmconvert.frontends.megengine.quantization import plain, qparams_of_dtype, qparams_of_record, real
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
    TracedModule,
)

OPERATOR_PREFIX = "opdef."
EXPRESSION_PACKAGE = "megengine.traced_module.expr."
STEPS_PER_EXPRESSION = 50  # less than half of what its bytes in a sound file are good for
MAX_RANK = 32
MAX_ELEMENTS = 1 << 48  # of a tensor, as for the arrays of a file


class GraphBuilder:
    """Builds one graph. ``captured`` returns the TracedModule of a module in a Constant."""

    def __init__(self, path: str, captured: Callable[[Instance, str], TracedModule], budget: Budget) -> None:
        self.path = path
        self.captured = captured
        self.budget = budget
        self.nodes: dict[int, Node] = {}

    def build(self, stand_in: Instance, result_definition: object) -> InternalGraph:
        """Builds the graph; ``result_definition`` is the TreeDef of its result, or None."""
        state: dict[str, Any] = stand_in.state
        graph = InternalGraph(text(state.get("_name"), "the name of a graph"))
        for value in state["_inputs"]:
            node = self._new_node(value)
            if isinstance(node, TensorNode) and not node.holds_integers:
                node.qparams = None  # of the caller's tensor; a model without a stub does not quantize it
            input_state = value.state["expr"].state
            name = text(input_state.get("name"), "the name of an input") or node.name
            graph.add_input(node, name, id=number(input_state.get("_id"), "an id"))
        for value in state["_exprs"]:
            graph.insert(self._expr(value))
        outputs = [self._node(value) for value in state["_outputs"]]
        graph.set_result(self._result(result_definition, outputs))
        return graph

    # ---- nodes

    def _new_node(self, value: Instance) -> Node:
        if id(value) in self.nodes:
            raise LoadError(DAMAGED, f"the node {self.nodes[id(value)]} is defined twice")
        state = value.state
        name, identity = text(state.get("_name"), "the name of a node"), number(state.get("_id"), "an id")
        node: Node
        if value.short_name == "ModuleNode":
            node = ModuleNode(name, _class_name(state.get("module_type")), id=identity)
        elif value.short_name == "TensorNode":
            dtype = state.get("_dtype")
            qparams = qparams_of_dtype(dtype) or qparams_of_record(state.get("_qparams"))
            dtype = dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else None
            node = TensorNode(name, _shape(state.get("_shape")), dtype, qparams=qparams, id=identity)
        else:
            raise LoadError(DAMAGED, f"found a {value.short_name} where a node is expected")
        self.nodes[id(value)] = node
        return node

    def _node(self, value: object) -> Node:
        node = self.nodes.get(id(value))
        if node is None:
            raise LoadError(DAMAGED, "a node is used before it is defined")
        return node

    # ---- expressions

    def _expr(self, value: Instance) -> Expr:
        builders = {
            "GetAttr": self._getattr,
            "CallMethod": self._call_method,
            "CallFunction": self._call_function,
            "Apply": self._apply,
            "Constant": self._constant,
        }
        build = builders.get(value.class_name.removeprefix(EXPRESSION_PACKAGE))
        if build is None:
            raise LoadError(DAMAGED, f"found a {value.class_name} where an expression is expected")
        state: dict[str, Any] = value.state
        self.budget.spend(STEPS_PER_EXPRESSION + len(state["inputs"]) + len(state["outputs"]))
        inputs = [self._node(node) for node in state["inputs"]]
        outputs = [self._new_node(node) for node in state["outputs"]]
        expr = build(state, inputs, outputs)
        expr.id = number(state.get("_id"), "an id")
        expr.source = Source(self.path, expr.id)
        return expr

    def _getattr(self, state: dict[str, object], inputs: list[Node], outputs: list[Node]) -> Expr:
        (owner,), (output,) = inputs, outputs
        if not isinstance(owner, ModuleNode):
            raise LoadError(DAMAGED, f"an attribute is read from {owner}, which is not a module")
        return GetAttr(owner, text(state["name"], "the name of an attribute"), result=output)

    def _call_method(self, state: dict[str, object], inputs: list[Node], outputs: list[Node]) -> Expr:
        args, kwargs = self._arguments(state, inputs)
        if not args or not isinstance(args[0], (Node, GlobalRef)):  # Tensor.__new__ is one of a class
            raise LoadError(DAMAGED, "a method is called on a value that is not a node")
        method, result = text(state["method"], "a method"), self._result(state.get("out_def"), outputs)
        return CallMethod(method, args, kwargs, result=result)

    def _call_function(self, state: dict[str, object], inputs: list[Node], outputs: list[Node]) -> Expr:
        args, kwargs = self._arguments(state, inputs)
        module, name = _function(state["func"])
        # as MegEngine prints it: the last part of the module, and the function's own name
        label = f"{module.rpartition('.')[2]}.{name.rpartition('.')[2]}"
        result = self._result(state.get("out_def"), outputs)
        return CallFunction(f"{module}.{name}", args, kwargs, label=label, result=result)

    def _apply(self, state: dict[str, Any], inputs: list[Node], outputs: list[Node]) -> Expr:
        attributes: dict[Any, Any] = self.budget.constant(dict(state["opdef_state"]))
        name = _class_name(attributes.pop("opdef_type")).rpartition(".")[2]
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        return CallFunction(f"{OPERATOR_PREFIX}{name}", tuple(inputs), attributes, label=name, result=result)

    def _constant(self, state: dict[str, object], inputs: list[Node], outputs: list[Node]) -> Expr:
        (output,) = outputs
        value, name = state["value"], text(state.get("name"), "the name of a constant") or None
        if isinstance(value, Instance) != isinstance(output, ModuleNode):
            raise LoadError(DAMAGED, f"the constant {output} is {kind(value)}")
        if isinstance(value, Instance):
            return Constant(self.captured(value, name or output.name), name, result=output)
        array = real(value) if isinstance(value, Tensor) else np.asarray(self.budget.constant(value))
        if array.dtype.kind not in "biufc":
            raise LoadError(DAMAGED, f"the constant {output} is not a numeric tensor")
        return Constant(array, name, result=output)

    # ---- trees

    def _arguments(self, state: dict[str, Any], inputs: list[Node]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        constants = [(position, plain(self.budget.constant(value))) for position, value in state["const_val"]]
        args, kwargs = unflatten_values(state["arg_def"], merged(inputs, constants), self.budget)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise LoadError(DAMAGED, "a call's arguments are not a tuple and a dict")
        if not all(isinstance(name, str) for name in kwargs):
            raise LoadError(DAMAGED, "a keyword argument has no name")
        return args, kwargs

    def _result(self, definition: object, outputs: list[Node]) -> Any:
        if not isinstance(definition, Instance) or _leaf_count(definition) != len(outputs):
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        return unflatten_values(definition, outputs, self.budget)


def _shape(value: object) -> tuple[int, ...] | None:
    """Returns the recorded shape. Raises LoadError for an invalid one."""
    if value is None:
        return None
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) > MAX_RANK:
        raise LoadError(DAMAGED, f"a shape is {kind(value)}")
    shape = tuple(int(extent) for extent in value)
    if any(extent < 0 for extent in shape):
        raise LoadError(DAMAGED, "an extent of a shape is negative")
    if math.prod(max(extent, 1) for extent in shape) > MAX_ELEMENTS:
        raise LoadError(OVER_LIMIT, "a shape exceeds the limit of 2^63 elements")
    return shape


def _leaf_count(definition: Instance) -> int:
    return (
        number(definition.state.get("num_leaves", 1), "a count") if definition.short_name == "TreeDef" else 1
    )


def _function(value: Any) -> tuple[str, str]:
    """Returns (module, qualified name); releases before 1.7 stored the function itself."""
    if isinstance(value, GlobalRef):
        return value.module, value.name
    module, name = value
    return text(module, "the module of a function"), text(name, "the name of a function")


def _class_name(value: object) -> str:
    """Returns the qualified name of a class stored as (module, name), or by releases before 1.7 as itself."""
    return ".".join(_function(value))
