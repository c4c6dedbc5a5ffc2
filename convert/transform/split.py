"""Splits a model into submodules, as torch.fx.passes.split_module does."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from tmconvert.errors import UsageError
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
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.ids import share
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.custom import raised_at

By = Callable[[Node], Hashable]


def split(module: TracedModule, by: By) -> TracedModule:
    """Returns a model whose submodules ``submod_KEY`` are the parts into which ``by`` divides the calls.

    Raises UsageError TM6052 where ``by`` fails, TM6055 for parts that need each other's results.
    """
    flat = flatten_module(module)
    if flat.graph is None:
        raise UsageError("TM6004", f"{module!r} has no graph to split")
    parts = _in_order(_parts(flat.graph, by))
    top = TracedModule(flat.name, flat.class_name, vocabulary=flat.vocabulary)
    top.source_file, top.producer, top.source_sha256 = flat.source_file, flat.producer, flat.source_sha256
    top.notes, top.dynamic_shapes = list(flat.notes), flat.dynamic_shapes
    _Assembly(flat, top, parts).run()
    top.example = module.example
    return top


class _Part:
    """The calls of one part, in order."""

    def __init__(self, key: Hashable) -> None:
        self.name = f"submod_{key}"
        self.calls: list[Expr] = []

    def taken(self) -> list[Node]:
        """Returns the values of other parts and inputs of the model that the calls use, in order."""
        own = {node for call in self.calls for node in call.outputs}
        nodes = [node for call in self.calls for node in call.inputs if node not in own]
        return [node for node in dict.fromkeys(nodes) if not isinstance(node.expr, (GetAttr, Constant))]

    def given(self, graph: InternalGraph) -> list[Node]:
        """Returns the results that others use."""
        own = set(self.calls)
        return [
            node
            for call in self.calls
            for node in call.outputs
            if graph.is_output(node) or any(user not in own for user in node.users)
        ]


def _parts(graph: InternalGraph, by: By) -> list[_Part]:
    parts: dict[Hashable, _Part] = {}
    for expr in graph:
        if isinstance(expr, (CallFunction, CallMethod)) and expr.outputs:
            try:
                key = by(expr.outputs[0])
                part = parts.setdefault(key, _Part(key))
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise UsageError(
                    "TM6052", f"the function that chooses parts failed: {reason}", source=raised_at(error)
                ) from error
            part.calls.append(expr)
    return [part for part in parts.values() if part.given(graph)]


def _in_order(parts: list[_Part]) -> list[_Part]:
    """Returns the parts, each after those whose results it takes. Raises UsageError TM6055 for a cycle."""
    made_by = {node: part for part in parts for call in part.calls for node in call.outputs}
    needs = {part.name: {made_by[node].name for node in part.taken() if node in made_by} for part in parts}
    order: list[_Part] = []
    rest = list(parts)
    while rest:
        done = {part.name for part in order}
        free = next((part for part in rest if needs[part.name] <= done), None)
        if free is None:
            names = ", ".join(part.name for part in rest)
            raise UsageError("TM6055", f"each of the parts {names} needs results of another one of them")
        order.append(free)
        rest.remove(free)
    return order


class _Assembly:
    """Writes the graphs of the parts, and the graph that calls them."""

    def __init__(self, flat: TracedModule, top: TracedModule, parts: list[_Part]) -> None:
        assert flat.graph is not None
        self.flat, self.source, self.top, self.parts = flat, flat.graph, top, parts

    def run(self) -> None:
        graph = InternalGraph(self.source.name)
        owner = ModuleNode(graph.free_name("self"), self.top.class_name, owner=self.top)
        graph.add_input(owner, "self")
        mapped: dict[Node, Node] = {}
        for node in self.source.inputs[1:]:
            mapped[node] = _input(graph, node)
        self.top.graphs[""] = graph
        for part in self.parts:
            child = self.top.children[part.name] = self._module(part)
            node = ModuleNode(graph.free_name(part.name), child.class_name, owner=child)
            graph.insert(GetAttr(owner, part.name, result=node, source=part.calls[0].source))
            given = part.given(self.source)
            mapped.update((each, _copied(graph, each)) for each in given)
            args = (node, *(mapped[each] for each in part.taken()))
            result = mapped[given[0]] if len(given) == 1 else tuple(mapped[each] for each in given)
            graph.insert(CallMethod("__call__", args, result=result, source=part.calls[0].source))
        attributes = _Attributes(self.flat, self.top, graph, owner, mapped)
        graph.set_result(map_leaves(attributes.value, self.source.result))
        parts = [self.top.children[part.name].graphs[""] for part in self.parts]
        share([graph, *parts], self.source.ids)

    def _module(self, part: _Part) -> TracedModule:
        """Returns the module of a part; its weights have their paths in the whole model."""
        made = TracedModule(part.name, f"{self.flat.class_name}.{part.name}", vocabulary=self.flat.vocabulary)
        graph = made.graphs[""] = InternalGraph(part.name)
        owner = ModuleNode(graph.free_name("self"), made.class_name, owner=made)
        graph.add_input(owner, "self")
        mapped: dict[Node, Node] = {node: _input(graph, node) for node in part.taken()}
        attributes = _Attributes(self.flat, made, graph, owner, mapped)
        for call in part.calls:
            args, kwargs = (map_leaves(attributes.value, tree) for tree in (call.args, call.kwargs))
            mapped.update((node, _copied(graph, node)) for node in call.outputs)
            graph.insert(call.like(args, kwargs, map_leaves(attributes.value, call.result)))
        given = [mapped[node] for node in part.given(self.source)]
        graph.set_result(given[0] if len(given) == 1 else tuple(given))
        return made


class _Attributes:
    """Maps nodes to a new graph; attributes and constants are read there again, on first use."""

    def __init__(
        self,
        flat: TracedModule,
        module: TracedModule,
        graph: InternalGraph,
        owner: ModuleNode,
        mapped: dict[Node, Node],
    ) -> None:
        self.flat, self.module, self.graph, self.owner, self.mapped = flat, module, graph, owner, mapped

    def value(self, leaf: object) -> Any:
        if isinstance(leaf, InternalGraph):
            return leaf.copy()
        if not isinstance(leaf, Node):
            return leaf
        if leaf not in self.mapped:
            self.mapped[leaf] = self._read(leaf)
        return self.mapped[leaf]

    def _read(self, node: Node) -> Node:
        expr = node.expr
        assert expr is not None
        if isinstance(expr, Input):  # self
            return self.owner
        if isinstance(expr, GetAttr) and isinstance(expr.args[0].expr, Input):
            self._hold(expr.name.partition(".")[0])
        made = _copied(self.graph, node)
        args, kwargs = (map_leaves(self.value, tree) for tree in (expr.args, expr.kwargs))
        self.graph.insert(expr.like(args, kwargs, made))
        return made

    def _hold(self, name: str) -> None:
        """Gives the module what the whole model has by this name."""
        module, flat = self.module, self.flat
        if name in flat.children:
            module.children[name] = flat.children[name]
        elif name in flat.tensors:
            module.tensors[name] = flat.tensors[name]
        elif name in flat.attributes:
            module.attributes[name] = flat.attributes[name]
        if name in flat.buffers:
            module.buffers.add(name)


def _input(graph: InternalGraph, node: Node) -> Node:
    name = node.expr.name if isinstance(node.expr, Input) else node.name
    source = node.expr.source if node.expr is not None else None
    return graph.add_input(_copied(graph, node), name, source=source)


def _copied(graph: InternalGraph, node: Node) -> Node:
    name = graph.free_name(node.name or f"v{node.id}")
    if isinstance(node, ModuleNode):
        return ModuleNode(name, node.class_name, owner=node.owner)
    assert isinstance(node, TensorNode)
    return TensorNode(name, node.shape, node.dtype, qparams=node.qparams).with_notes_of(node)
