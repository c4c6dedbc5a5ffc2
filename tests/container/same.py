"""Whether two TracedModules are the same in structure, down to the types of constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import Expr, GetAttr, InternalGraph, ModuleNode, Node, TensorNode, TracedModule
from tmconvert.ir.inert import Instance


def assert_same(one: TracedModule, other: TracedModule) -> None:
    """``source_file`` apart, nothing may tell the two models from each other."""
    Comparison().module(one, other)


class Comparison:
    def __init__(self) -> None:
        self.modules: dict[int, int] = {}
        self.arrays: dict[int, int] = {}
        self.nodes: dict[int, int] = {}

    def paired(self, table: dict[int, int], one: Any, other: Any) -> bool:
        """Whether the two were met before, as partners; two that share must share in both models."""
        known = table.setdefault(id(one), id(other)) if id(one) not in table else None
        assert table[id(one)] == id(other)
        return known is None

    def module(self, one: TracedModule, other: TracedModule) -> None:
        if self.paired(self.modules, one, other):
            return
        assert (one.name, one.class_name, one.producer) == (other.name, other.class_name, other.producer)
        assert one.vocabulary is other.vocabulary
        for mine, theirs in (
            (one.children, other.children),
            (one.tensors, other.tensors),
            (one.attributes, other.attributes),
        ):
            self.value(mine, theirs)
        assert list(one.graphs) == list(other.graphs)
        for mine, theirs in zip(one.graphs.values(), other.graphs.values(), strict=True):
            self.graph(mine, theirs, one.source_file, other.source_file)

    def graph(self, one: InternalGraph, other: InternalGraph, file: str, other_file: str) -> None:
        assert one.name == other.name
        assert str(one) == str(other)
        for mine, theirs in zip(one.inputs, other.inputs, strict=True):
            self.node(mine, theirs)
            assert mine.expr is not None and theirs.expr is not None
            assert (mine.expr.name, mine.expr.id) == (theirs.expr.name, theirs.expr.id)
        for mine, theirs in zip(one, other, strict=True):
            self.expr(mine, theirs)
            assert str(mine.source).replace(file, "") == str(theirs.source).replace(other_file, "")
        self.value(one.result, other.result)

    def expr(self, one: Expr, other: Expr) -> None:
        assert type(one) is type(other)
        for mine, theirs in zip(one.outputs, other.outputs, strict=True):
            self.node(mine, theirs)
        for name in ("args", "kwargs", "result", "id", "made_by", *one._own_slots):
            self.value(getattr(one, name), getattr(other, name))
        if isinstance(one, GetAttr):
            assert one.args[0].owner is None or one.args[0].owner.name == other.args[0].owner.name

    def node(self, one: Node, other: Node) -> None:
        self.paired(self.nodes, one, other)
        assert type(one) is type(other)
        assert (one.name, one.id) == (other.name, other.id)
        assert [expr.id for expr in one.uses] == [expr.id for expr in other.uses]
        assert list(one.uses.values()) == list(other.uses.values())
        if isinstance(one, ModuleNode) and isinstance(other, ModuleNode):
            assert one.class_name == other.class_name
            assert (one.owner is None) == (other.owner is None)
            if one.owner is not None and other.owner is not None:
                self.module(one.owner, other.owner)
        if isinstance(one, TensorNode) and isinstance(other, TensorNode):
            assert (one.shape, one.qparams, one.layout) == (other.shape, other.qparams, other.layout)
            self.dtype(one.dtype, other.dtype)

    def dtype(self, one: np.dtype | None, other: np.dtype | None) -> None:
        assert one == other
        if one is not None and other is not None:
            assert repr(one.metadata) == repr(other.metadata)

    def value(self, one: Any, other: Any) -> None:
        if isinstance(one, np.dtype):
            self.dtype(one, other)
            return
        assert type(one) is type(other), (one, other)
        if isinstance(one, TracedModule):
            self.module(one, other)
        elif isinstance(one, Node):
            assert self.nodes[id(one)] == id(other)
        elif isinstance(one, np.ndarray):
            self.paired(self.arrays, one, other)
            self.dtype(one.dtype, other.dtype)
            assert one.shape == other.shape
            assert one.tobytes() == other.tobytes()
            assert repr(getattr(one, "qparams", None)) == repr(getattr(other, "qparams", None))
        elif isinstance(one, (list, tuple)):
            for mine, theirs in zip(one, other, strict=True):
                self.value(mine, theirs)
        elif isinstance(one, dict):
            assert list(one) == list(other)
            for mine, theirs in zip(one.values(), other.values(), strict=True):
                self.value(mine, theirs)
        elif isinstance(one, slice):
            self.value((one.start, one.stop, one.step), (other.start, other.stop, other.step))
        elif isinstance(one, Instance):
            assert one.reference == other.reference
            self.value(one.state, other.state)
        else:
            assert repr(one) == repr(other)
