"""Decodes one graph of ``tm.json``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.container.faults import nonsense
from tmconvert.container.quantization import decode_qparams
from tmconvert.container.values import ValueDecoder, decode_dtype, text
from tmconvert.container.vocabularies import vocabulary_called
from tmconvert.errors.source import Source
from tmconvert.formats.tm.faults import over_limit
from tmconvert.formats.tm.format import MAX_RANK
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
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.tree import leaves

MAX_ELEMENTS = 1 << 48
LAYOUTS = (None, "nhwc")


def fields(
    value: object, what: str, names: set[str], optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Checks that ``value`` is an object with exactly these entries. Raises LoadError TM1015."""
    if not isinstance(value, dict) or not names <= set(value) <= names | optional:
        raise nonsense(f"{what} has missing or unexpected entries")
    return value


def listed(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise nonsense(f"{what} must be a list")
    return value


def number(value: object, what: str) -> int:
    if type(value) is not int or not -(2**63) < value < 2**63:
        raise nonsense(f"{what} must be an integer")
    return value


class GraphDecoder:
    """Decodes one graph. Nodes are numbered in the order of definition: none is used before it."""

    def __init__(self, path: str, values: ValueDecoder) -> None:
        self.path = path
        self.values = values
        self.nodes: list[Node] = []
        self.described: list[Any] = []

    def graph(self, value: dict[str, object]) -> InternalGraph:
        """Decodes the graph. Raises LoadError TM1015, GraphError."""
        graph = InternalGraph(text(value["name"], "the name of a graph"))
        self.described = listed(value["nodes"], "the list of nodes")
        for item in listed(value["inputs"], "the list of inputs"):
            self._input(graph, item)
        for item in listed(value["exprs"], "the list of expressions"):
            graph.insert(self._expr(item))
        if len(self.nodes) != len(self.described):
            raise nonsense("a graph has nodes that no expression defines")
        graph.set_result(self._tree(value["result"]))
        return graph

    def _tree(self, value: object) -> Any:
        return self.values.decode(value, self.nodes)

    def _input(self, graph: InternalGraph, value: object) -> None:
        said = fields(value, "an input", {"node", "name", "id"}, COMMON)
        node = self._new_nodes({"node": said["node"]})
        common = self._common(said, None)
        graph.add_input(node, text(said["name"], "the name of an input"), **common)

    def _expr(self, value: object) -> Expr:
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in BUILDERS:
            raise nonsense("an expression has an unknown kind")
        names, build = BUILDERS[kind]
        said = fields(
            value, f"an expression {kind}", names | {"kind", "id", "result"}, COMMON | {"vocabulary"}
        )
        build_now = build(self, said)  # the arguments, before there are results to refer to
        result = self._new_nodes(said["result"])
        common = self._common(said, Source(self.path, number(said["id"], "an id")))
        expr = build_now(result=result, **common)
        if "vocabulary" in said:
            expr.vocabulary = vocabulary_called(said["vocabulary"])
        return expr

    def _new_nodes(self, tree: object) -> Any:
        """Decodes a tree of results, all of which are new nodes in order."""
        first = len(self.nodes)
        count = _count_nodes(tree)
        self.nodes += [self._node(item) for item in self.described[first : first + count]]
        result = self._tree(tree)
        made = [leaf for leaf in leaves(result) if leaf is not None]  # a module may return None among others
        if list(map(id, made)) != list(map(id, self.nodes[first:])):
            raise nonsense("the results of an expression are not the next nodes of its graph")
        return result

    def _node(self, value: object) -> Node:
        if isinstance(value, dict) and "class" in value:
            said = fields(value, "a node", {"name", "id", "class"})
            return ModuleNode(
                text(said["name"], "the name of a node"),
                text(said["class"], "a class"),
                id=number(said["id"], "an id"),
            )
        said = fields(value, "a node", {"name", "id", "shape", "dtype"}, frozenset({"qparams", "layout"}))
        layout = said.get("layout")
        if layout not in LAYOUTS:
            raise nonsense("the layout of a node is unknown")
        return TensorNode(
            text(said["name"], "the name of a node"),
            None if said["shape"] is None else _shape(said["shape"]),
            None if said["dtype"] is None else decode_dtype(said["dtype"]),
            qparams=decode_qparams(said["qparams"]) if "qparams" in said else None,
            layout=layout,
            id=number(said["id"], "an id"),
        )

    def _common(self, said: dict[str, object], usual: Source | None) -> dict[str, Any]:
        source, made_by = usual, None
        if "source" in said:
            source = None if said["source"] is None else self._source(said["source"])
        if "made_by" in said:
            made_by = text(said["made_by"], "the name of a pass")
        return {"id": number(said["id"], "an id"), "source": source, "made_by": made_by}

    def _source(self, value: object) -> Source:
        said = fields(value, "a source", {"file", "line", "scope", "class"})
        return Source(
            self.path if said["file"] is None else text(said["file"], "a file"),
            None if said["line"] is None else number(said["line"], "a line"),
            text(said["scope"], "a scope"),
            text(said["class"], "a class"),
        )

    # ---- the kinds of expressions: each decodes its arguments and gives what makes the expression

    def _getattr(self, said: dict[str, object]) -> Callable[..., Expr]:
        owner, name = self._tree(said["owner"]), text(said["name"], "an attribute")
        if not isinstance(owner, ModuleNode):
            raise nonsense(f"an attribute {name[:80]!r} is read from a value that is not a module")
        return lambda **common: GetAttr(owner, name, **common)

    def _constant(self, said: dict[str, object]) -> Callable[..., Expr]:
        value = self.values.decode(said["value"])
        name = None if said["name"] is None else text(said["name"], "the name of a constant")
        if not isinstance(value, (np.ndarray, TracedModule)):
            raise nonsense("a constant is neither a tensor nor a module")

        def make(result: object, **common: object) -> Expr:
            wanted = ModuleNode if isinstance(value, TracedModule) else TensorNode
            if not isinstance(result, wanted):
                raise nonsense("a constant has a node of another kind than its value")
            return Constant(value, name, result=result, **common)

        return make

    def _method(self, said: dict[str, object]) -> Callable[..., Expr]:
        args, kwargs = self._arguments(said)
        method = text(said["method"], "a method")
        if not args or not isinstance(args[0], (Node, GlobalRef)):
            raise nonsense("a method is called on a value that is neither a node nor a class")
        return lambda **common: CallMethod(method, args, kwargs, **common)

    def _function(self, said: dict[str, object]) -> Callable[..., Expr]:
        args, kwargs = self._arguments(said)
        function, label = text(said["function"], "a function"), text(said["label"], "a label")
        return lambda **common: CallFunction(function, args, kwargs, label=label, **common)

    def _arguments(self, said: dict[str, object]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = tuple(self._tree(item) for item in listed(said["args"], "the list of arguments"))
        if not isinstance(said["kwargs"], dict):
            raise nonsense("the keyword arguments of a call must be an object")
        kwargs = {text(name, "a keyword"): self._tree(item) for name, item in said["kwargs"].items()}
        return args, kwargs


COMMON = frozenset({"source", "made_by"})
ARGUMENTS = {"args", "kwargs"}
Build = Callable[[GraphDecoder, dict[str, Any]], Callable[..., Expr]]
BUILDERS: dict[str, tuple[set[str], Build]] = {
    "getattr": ({"owner", "name"}, GraphDecoder._getattr),
    "constant": ({"value", "name"}, GraphDecoder._constant),
    "method": ({"method"} | ARGUMENTS, GraphDecoder._method),
    "function": ({"function", "label"} | ARGUMENTS, GraphDecoder._function),
}


def _count_nodes(tree: object) -> int:
    """Counts the leaves of a tree of results, before it is validated."""
    waiting, count = [tree], 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            count += "node" in value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return count


def _shape(value: object) -> tuple[int, ...]:
    shape = tuple(number(extent, "an extent") for extent in listed(value, "a shape"))
    if len(shape) > MAX_RANK or any(extent < 0 for extent in shape):
        raise nonsense("a shape is not valid")
    if math.prod(max(extent, 1) for extent in shape) > MAX_ELEMENTS:
        raise over_limit("a shape exceeds the limit of 2^63 elements")
    return shape
