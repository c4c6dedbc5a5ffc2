"""Wraps a graph of ATen ops in a module, which can be saved and converted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.frontends.aten.vocabulary import SIZE, VOCABULARY
from tmconvert.ir import (
    CallFunction,
    Constant,
    Expr,
    GetAttr,
    Input,
    InternalGraph,
    ModuleNode,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.fake_quant import with_qparams
from tmconvert.ir.symbolic.dims import Dim, example
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Attribute, Op


def as_module(graph: InternalGraph, source: TracedModule, catalogue: Mapping[str, Op]) -> TracedModule:
    """Returns a module with the calls and QParams of ``graph``; ``source`` is its source framework.

    Symbolic sizes in the graph become dynamic: each is a symbol of the shape of an input.
    """
    made = TracedModule(source.name, source.class_name, vocabulary=VOCABULARY)
    made.source_file, made.producer = source.source_file, source.producer
    made.metadata = source.metadata
    made.source_sha256, made.notes = source.source_sha256, list(source.notes)
    made.dynamic_shapes = {
        node.expr.name: axes
        for node in graph.inputs
        if isinstance(node.expr, Input) and (axes := _dynamic_axes(node))
    }
    made.graphs[""] = _Copy(graph, made, catalogue).flat
    return made


def _dynamic_axes(node: Any) -> dict[int, str]:
    return {axis: str(size) for axis, size in enumerate(node.shape or ()) if isinstance(size, Dim)}


class _Copy:
    """A copy of a graph with the module as first input; constants are tensors of the module."""

    def __init__(self, graph: InternalGraph, owner: TracedModule, catalogue: Mapping[str, Op]) -> None:
        self.flat, self.owner, self.catalogue = InternalGraph(graph.name), owner, catalogue
        self.top = ModuleNode(self.flat.free_name("self"), owner.class_name, owner=owner)
        self.flat.add_input(self.top, "self")
        self.mapped: dict[Any, Any] = {None: None}
        self.origins: dict[str, tuple[TensorNode, int, Dim]] = {}  # of symbols
        self.sizes: dict[Dim, TensorNode] = {}
        for node in graph.inputs:
            assert isinstance(node, TensorNode) and isinstance(node.expr, Input)
            for axis, size in enumerate(node.shape or ()):
                if isinstance(size, Dim) and len(size.symbols) == 1:
                    self.origins.setdefault(next(iter(size.symbols)), (node, axis, size))
            self.mapped[node] = self.flat.add_input(
                self._copy_node(node), node.expr.name, source=node.expr.source
            )
        for expr in graph:
            self._copy(expr)
        self.flat.set_result(map_leaves(self._mapped, graph.result))

    def _copy_node(self, node: Any) -> TensorNode:
        shape = node.shape and tuple(
            example(size) if self._is_of_input(size) else size for size in node.shape
        )
        return TensorNode(self.flat.free_name(node.name), shape, node.dtype, qparams=node.qparams)

    def _mapped(self, leaf: object) -> Any:
        return self.mapped[leaf]

    def _copy(self, expr: Expr) -> None:
        self.mapped |= {node: self._copy_node(node) for node in expr.outputs}
        result = map_leaves(self._mapped, expr.result)
        if isinstance(expr, Constant):
            name, qparams, value = expr.output.name, expr.output.qparams, np.asarray(expr.value)
            self.owner.tensors[name] = value if qparams is None else with_qparams(value, qparams)
            self.flat.insert(GetAttr(self.top, name, result=result, source=expr.source))
            return
        assert isinstance(expr, CallFunction)
        args = [map_leaves(self._mapped, argument) for argument in expr.args]
        arguments = self.catalogue[expr.function].by_name(args, expr.kwargs)
        first = []  # tensors in front; those behind an attribute go by name
        for argument in self.catalogue[expr.function].args:
            if isinstance(argument, Attribute):
                break
            first.append(arguments.pop(argument.name))
        arguments = map_leaves(self._sized, arguments)
        self.flat.insert(
            CallFunction(expr.function, tuple(first), arguments, result=result, source=expr.source)
        )

    def _sized(self, leaf: object) -> Any:
        """Returns a call that reads a size in place of a symbolic one."""
        if not isinstance(leaf, Dim) or not self._is_of_input(leaf):
            return leaf
        if leaf not in self.sizes:
            x, axis, size = self.origins[next(iter(leaf.symbols))]
            made = self.sizes[leaf] = TensorNode(self.flat.free_name("size"), (1,), np.dtype(np.int64))
            arguments = {"axis": axis, "extent": str(size), "size": str(leaf)}
            self.flat.insert(CallFunction(SIZE, (self.mapped[x],), arguments, result=made))
        return self.sizes[leaf]

    def _is_of_input(self, size: object) -> bool:
        """Whether a size is an expression of one symbol of an input; others are data-dependent."""
        return isinstance(size, Dim) and len(size.symbols) == 1 and {*size.symbols} <= self.origins.keys()
