"""Graphs as records of MegEngine's InternalGraph: nodes, expressions, names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tmconvert.errors import WriteError
from tmconvert.frontends.megengine.expressions import OPERATOR_PREFIX
from tmconvert.frontends.megengine.vocabulary import MegEngineVocabulary
from tmconvert.frontends.megengine.writing.argument_trees import call_tree, flattened
from tmconvert.frontends.megengine.writing.aten_to_megengine import in_words
from tmconvert.frontends.megengine.writing.names import NameSpace
from tmconvert.frontends.megengine.writing.pickle_writer import CANNOT_SAVE
from tmconvert.frontends.megengine.writing.records import MODULE, Record, class_reference, default_dict
from tmconvert.frontends.megengine.writing.values import device, stored_dtype
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    Input,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.inert import GlobalRef

_EXPRESSIONS = "megengine.traced_module.expr"
_GRAPHS = "megengine.traced_module.traced_module"
_NODES = "megengine.traced_module.node"
_OPERATORS = "megengine.core._imperative_rt.ops"


class GraphRecords:
    """Makes the record of one graph.

    ``version`` is the release that recorded the calls, None for 1.6, which did not store it. ``held`` returns
    the record of a module or tensor in a Constant, ``constant`` that of a constant argument,
    ``recorded_qparams`` that of the fake quantization of a tensor.
    """

    def __init__(
        self,
        graph: InternalGraph,
        qualname: str,
        version: str | None,
        held: Callable[[Any], Any],
        constant: Callable[[Any], Any],
        recorded_qparams: Callable[[TensorNode], Record | None],
    ) -> None:
        self.graph = graph
        self.version = version
        self.held = held
        self.constant = constant
        self.recorded_qparams = recorded_qparams
        self.names = NameSpace(graph, qualname)
        self.nodes: dict[Node, Record] = {}
        self.exprs: dict[Expr, Record] = {}

    def record(self) -> Record:
        """Returns the record of the graph."""
        graph, names = self.graph, self.names
        exprs = list(graph)
        inputs = [node.expr for node in graph.inputs if node.expr is not None]
        for expr in (*inputs, *exprs):
            self.exprs[expr] = Record(GlobalRef(_EXPRESSIONS, self._kind(expr)))
            for node in expr.outputs:
                kind = "ModuleNode" if isinstance(node, ModuleNode) else "TensorNode"
                self.nodes[node] = Record(GlobalRef(_NODES, kind))
        for expr in (*inputs, *exprs):
            self.exprs[expr].state = self._expr_state(expr)
            for node in expr.outputs:
                self.nodes[node].state = self._node_state(node)
        used = {node.name: record for node, record in self.nodes.items() if node.name}
        namespace = {"name": names.graph_name, "qualname": names.qualname, "_used_names": used}
        state = {
            "_exprs": [self.exprs[expr] for expr in exprs],
            "_inputs": self._nodes(graph.inputs),
            "_outputs": self._nodes(self.results(graph.result)[0]),
            "_watch_point": [],
            "_end_point": [],
            "_namespace": Record(GlobalRef(_GRAPHS, "NameSpace"), state=namespace),
            "_rst": default_dict(),
            "_name": names.graph_name,
            "_qualname": names.qualname,
            "_total_ids": (
                1 + max((node.id for node in self.nodes), default=0),
                1 + max((expr.id for expr in self.exprs), default=0),
            ),
        }
        return Record(GlobalRef(_GRAPHS, "InternalGraph"), state=state)

    def results(self, tree: object) -> tuple[list[Node], Record]:
        """Returns the nodes of a tree of results in MegEngine's order, and its definition."""
        nodes, definition = flattened(tree, self.constant)
        if not all(isinstance(node, Node) for node in nodes):
            raise WriteError(CANNOT_SAVE, "a result of a graph is a constant, MegEngine returns tensors only")
        return nodes, definition

    # ---- nodes

    def _nodes(self, nodes: Iterable[Node]) -> list[Record]:
        return [self.nodes[node] for node in nodes]

    def _node_state(self, node: Node) -> dict[str, Any]:
        assert node.expr is not None
        users = [self.exprs[user] for user, count in node.uses.items() for _ in range(count)]
        state: dict[str, Any] = {"expr": self.exprs[node.expr], "users": users, "_id": node.id}
        names = {"_name": node.name or None, "_qualname": self.names.qualnames[node]}
        if isinstance(node, ModuleNode):
            return state | names | {"module_type": self._module_type(node)}
        assert isinstance(node, TensorNode)
        return state | {
            "_qparams": self.recorded_qparams(node),
            "_shape": node.shape,
            "_dtype": None if node.dtype is None else stored_dtype(node.dtype, node.qparams),
            "_device": device(),
            **names,
        }

    def _module_type(self, node: ModuleNode) -> tuple[str, str]:
        is_traced = node.owner is not None and is_traced_module(node.owner)
        reference = MODULE if is_traced or not node.class_name else class_reference(node.class_name)
        return reference.module, reference.name

    # ---- expressions

    def _kind(self, expr: Expr) -> str:
        is_operator = isinstance(expr, CallFunction) and expr.function.startswith(OPERATOR_PREFIX)
        return "Apply" if is_operator else type(expr).__name__

    def _expr_state(self, expr: Expr) -> dict[str, Any]:
        state: dict[str, Any] = {"_id": expr.id, "_disable_remove": False}
        outputs = {"outputs": self._nodes(expr.outputs)}
        if isinstance(expr, Input):
            return state | {"inputs": [], **outputs, "name": expr.name}
        if isinstance(expr, GetAttr):
            return state | {"inputs": self._nodes(expr.inputs), **outputs, "name": expr.name}
        if isinstance(expr, Constant):
            return state | {"value": self.held(expr.value), "name": expr.name, "inputs": [], **outputs}
        version = {} if self.version is None else {"version": self.version}
        if self._kind(expr) == "Apply":
            return state | self._operator(expr) | outputs | version
        assert isinstance(expr, (CallFunction, CallMethod))
        return state | self._call(expr) | version

    def _operator(self, expr: Expr) -> dict[str, Any]:
        assert isinstance(expr, CallFunction)
        if len(expr.inputs) != len(expr.args):
            raise WriteError(CANNOT_SAVE, f"the operator {expr.label} has an operand that is not a tensor")
        name = expr.function.removeprefix(OPERATOR_PREFIX)
        attributes = {key: self.constant(value) for key, value in expr.kwargs.items()}
        return {
            "opdef_state": attributes | {"opdef_type": GlobalRef(_OPERATORS, name)},
            "inputs": self._nodes(expr.inputs),
        }

    def _call(self, expr: CallFunction | CallMethod) -> dict[str, Any]:
        if isinstance(expr, CallMethod):
            if expr.vocabulary is not None and not isinstance(expr.vocabulary, MegEngineVocabulary):
                raise WriteError(CANNOT_SAVE, f"the call of a method is not one of MegEngine: {expr!r}")
            what: dict[str, Any] = {"method": expr.method}
            args, kwargs = expr.args, expr.kwargs
        else:
            function, args, kwargs = in_words(expr)
            reference = class_reference(function)
            what = {"func": (reference.module, reference.name)}
        leaves, arg_def = flattened(call_tree(args, kwargs), self.constant)
        constants = [(place, leaf) for place, leaf in enumerate(leaves) if not isinstance(leaf, Node)]
        inputs = self._nodes(leaf for leaf in leaves if isinstance(leaf, Node))
        outputs, out_def = self.results(expr.result)
        return what | {
            "const_val": constants,
            "inputs": inputs,
            "arg_def": arg_def,
            "out_def": out_def if outputs else None,
            "outputs": self._nodes(outputs),
        }


def is_traced_module(module: TracedModule) -> bool:
    """Whether MegEngine keeps a module as a TracedModule, not as a module of a class of its own."""
    return bool(module.graphs) or module.class_name == f"{_GRAPHS}.TracedModule"
