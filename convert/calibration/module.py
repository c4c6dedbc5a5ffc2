"""Wraps a graph of ATen ops in a module, which can be saved and converted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.frontends.aten.vocabulary import VOCABULARY
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
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Attribute, Op


def as_module(graph: InternalGraph, source: TracedModule, catalogue: Mapping[str, Op]) -> TracedModule:
    """Returns a module with the calls and QParams of ``graph``; ``source`` is its source framework."""
    made = TracedModule(source.name, source.class_name, vocabulary=VOCABULARY)
    made.source_file, made.producer = source.source_file, source.producer
    made.metadata = source.metadata
    made.source_sha256, made.notes = source.source_sha256, list(source.notes)
    made.dynamic_shapes = {}
    made.graphs[""] = _Copy(graph, made, catalogue).flat
    return made


class _Copy:
    """A copy of a graph with the module as first input; constants are tensors of the module."""

    def __init__(self, graph: InternalGraph, owner: TracedModule, catalogue: Mapping[str, Op]) -> None:
        self.flat, self.owner, self.catalogue = InternalGraph(graph.name), owner, catalogue
        self.top = ModuleNode(self.flat.free_name("self"), owner.class_name, owner=owner)
        self.flat.add_input(self.top, "self")
        self.mapped: dict[Any, Any] = {None: None}
        for node in graph.inputs:
            assert isinstance(node, TensorNode) and isinstance(node.expr, Input)
            self.mapped[node] = self.flat.add_input(
                self._copy_node(node), node.expr.name, source=node.expr.source
            )
        for expr in graph:
            self._copy(expr)
        self.flat.set_result(map_leaves(self._mapped, graph.result))

    def _copy_node(self, node: Any) -> TensorNode:
        return TensorNode(self.flat.free_name(node.name), node.shape, node.dtype, qparams=node.qparams)

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
        self.flat.insert(
            CallFunction(expr.function, tuple(first), arguments, result=result, source=expr.source)
        )
