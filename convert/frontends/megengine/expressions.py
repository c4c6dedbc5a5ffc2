"""From the stand-ins of one InternalGraph to the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import LoadError
from ...ir import (
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
from ...source import Source
from .arguments import merged, unflatten_values
from .stand_ins import GlobalRef, Instance, Tensor

OPERATOR_PREFIX = "opdef."


class GraphBuilder:
    """Builds one graph. ``captured`` gives the TracedModule of a module held by a Constant."""

    def __init__(self, path: str, captured: Callable[[Instance, str], TracedModule]) -> None:
        self.path = path
        self.captured = captured
        self.nodes: dict[int, Node] = {}

    def build(self, stand_in: Instance, result_definition: Any) -> InternalGraph:
        """The graph; ``result_definition`` is the TreeDef of what it returns, or None."""
        state = stand_in.state
        graph = InternalGraph(str(state.get("_name") or ""))
        for value in state["_inputs"]:
            node = self._new_node(value)
            input_state = value.state["expr"].state
            name = input_state.get("name") or node.name
            graph.add_input(node, str(name), id=int(input_state.get("_id") or 0))
        for value in state["_exprs"]:
            graph.insert(self._expr(value))
        outputs = [self._node(value) for value in state["_outputs"]]
        graph.set_result(_result(result_definition, outputs))
        return graph

    # ---- nodes

    def _new_node(self, value: Instance) -> Node:
        if id(value) in self.nodes:
            raise LoadError("TM1007", f"the node {self.nodes[id(value)]} is produced twice")
        state = value.state
        name, number = str(state.get("_name") or ""), int(state.get("_id") or 0)
        node: Node
        if value.short_name == "ModuleNode":
            node = ModuleNode(name, _class_name(state.get("module_type")), id=number)
        elif value.short_name == "TensorNode":
            shape, dtype = state.get("_shape"), state.get("_dtype")
            shape = None if shape is None else tuple(int(extent) for extent in shape)
            node = TensorNode(name, shape, dtype if isinstance(dtype, np.dtype) else None, id=number)
        else:
            raise LoadError("TM1007", f"a {value.short_name} stands where a node belongs")
        self.nodes[id(value)] = node
        return node

    def _node(self, value: Any) -> Node:
        node = self.nodes.get(id(value))
        if node is None:
            raise LoadError("TM1007", "a node is used before it is produced")
        return node

    # ---- expressions

    def _expr(self, value: Instance) -> Expr:
        build = getattr(self, f"_{value.short_name.lower()}", None)
        if build is None or not value.class_name.startswith("megengine.traced_module.expr."):
            raise LoadError("TM1007", f"a {value.class_name} stands where an expression belongs")
        state = value.state
        inputs = [self._node(node) for node in state["inputs"]]
        outputs = [self._new_node(node) for node in state["outputs"]]
        number = int(state.get("_id") or 0)
        expr: Expr = build(state, inputs, outputs)
        expr.id = number
        expr.source = Source(self.path, number)
        return expr

    def _getattr(self, state: dict[str, Any], inputs: list[Node], outputs: list[Node]) -> Expr:
        (owner,), (output,) = inputs, outputs
        return GetAttr(owner, str(state["name"]), result=output)

    def _callmethod(self, state: dict[str, Any], inputs: list[Node], outputs: list[Node]) -> Expr:
        args, kwargs = _arguments(state, inputs)
        return CallMethod(str(state["method"]), args, kwargs, result=_result(state.get("out_def"), outputs))

    def _callfunction(self, state: dict[str, Any], inputs: list[Node], outputs: list[Node]) -> Expr:
        args, kwargs = _arguments(state, inputs)
        module, name = _function(state["func"])
        # as MegEngine prints it: the last part of the module, and the function's own name
        label = f"{module.rpartition('.')[2]}.{name.rpartition('.')[2]}"
        result = _result(state.get("out_def"), outputs)
        return CallFunction(f"{module}.{name}", args, kwargs, label=label, result=result)

    def _apply(self, state: dict[str, Any], inputs: list[Node], outputs: list[Node]) -> Expr:
        attributes = dict(state["opdef_state"])
        name = _class_name(attributes.pop("opdef_type")).rpartition(".")[2]
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        return CallFunction(f"{OPERATOR_PREFIX}{name}", tuple(inputs), attributes, label=name, result=result)

    def _constant(self, state: dict[str, Any], inputs: list[Node], outputs: list[Node]) -> Expr:
        (output,) = outputs
        value, name = state["value"], state.get("name")
        if isinstance(value, Tensor):
            return Constant(value.array, name, result=output)
        if isinstance(value, Instance):
            return Constant(self.captured(value, str(name or output.name)), name, result=output)
        return Constant(np.asarray(value), name, result=output)


def _arguments(state: dict[str, Any], inputs: list[Node]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    values = [_plain(value) for value in merged(inputs, state["const_val"])]
    args, kwargs = unflatten_values(state["arg_def"], values)
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise LoadError("TM1007", "a call's arguments are not a tuple and a dict")
    return args, kwargs


def _plain(value: Any) -> Any:
    if isinstance(value, GlobalRef) and value.qualified_name == "builtins.ellipsis":
        return Ellipsis
    return value


def _result(definition: Any, outputs: list[Node]) -> Any:
    if not isinstance(definition, Instance) or _leaf_count(definition) != len(outputs):
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
    return unflatten_values(definition, outputs)


def _leaf_count(definition: Instance) -> int:
    return int(definition.state.get("num_leaves", 1)) if definition.short_name == "TreeDef" else 1


def _function(value: Any) -> tuple[str, str]:
    """(module, qualified name); releases before 1.7 stored the function itself."""
    if isinstance(value, GlobalRef):
        return value.module, value.name
    module, name = value
    return str(module), str(name)


def _class_name(value: Any) -> str:
    """Qualified name of a class stored as (module, name), or by releases before 1.7 as itself."""
    if isinstance(value, GlobalRef):
        return value.qualified_name
    module, name = value
    return f"{module}.{name}"
