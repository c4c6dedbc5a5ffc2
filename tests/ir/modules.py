"""Small hierarchies of modules, made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors.source import Source
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    GetAttr,
    InternalGraph,
    ModuleNode,
    TensorNode,
    TracedModule,
)

FLOAT = np.dtype(np.float32)


class Vocabulary:
    """``neg`` is the only call that has a meaning; counts how often it was computed."""

    def __init__(self) -> None:
        self.calls = 0

    def apply(self, g: Any, expr: Any, args: Any, kwargs: Any) -> Any:
        return g.call("aten::neg", *args)

    def evaluate(self, expr: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls += 1
        return -args[0]

    def name(self, expr: Any) -> str:
        return "neg"


class Body:
    """Writes the graph of one module: ``x = body.call(child, x)``, ``body.give(x)``."""

    def __init__(self, module: TracedModule, inputs: int = 1) -> None:
        self.module = module
        self.graph = InternalGraph(module.class_name.rpartition(".")[2])
        self.self = self.graph.add_input(ModuleNode("self", owner=module))
        self.inputs = [
            self.graph.add_input(TensorNode(f"x{i}" if i else "x", (2, 3), FLOAT)) for i in range(inputs)
        ]
        self.count = 0
        module.graphs["one"] = self.graph

    def tensor(self, name: str) -> TensorNode:
        return TensorNode(self.graph.free_name(name), (2, 3), FLOAT)

    def neg(self, x: TensorNode, name: str = "neg_out") -> TensorNode:
        return self._insert(CallFunction("neg", (x,), result=self.tensor(name))).output

    def child(self, name: str) -> ModuleNode:
        node = ModuleNode(self.graph.free_name(name), owner=self.module.children[name])
        self._insert(GetAttr(self.self, name, result=node))
        return node

    def captured(self, module: TracedModule) -> ModuleNode:
        node = ModuleNode(self.graph.free_name("captured"), owner=module)
        self._insert(Constant(module, "held", result=node))
        return node

    def call(self, module: ModuleNode, *args: Any, name: str = "out") -> TensorNode:
        return self._insert(CallMethod("__call__", (module, *args), result=self.tensor(name))).output

    def give(self, result: Any) -> None:
        self.graph.set_result(result)

    def _insert(self, expr: Any) -> Any:
        self.count += 1
        expr.id, expr.source = self.count, Source("net.tm", self.count)
        return self.graph.insert(expr)


def module(name: str = "", **children: TracedModule) -> TracedModule:
    made = TracedModule(name, f"user.{name.title() or 'Top'}", vocabulary=Vocabulary())
    made.children.update(children)
    return made


def chain(depth: int, calls: int = 1) -> TracedModule:
    """A module that calls its child ``calls`` times, which calls its child ..., ``depth`` deep."""
    inner = module("m0")
    body = Body(inner)
    body.give(body.neg(body.inputs[0]))
    for level in range(1, depth):
        outer = module(f"m{level}", child=inner)
        body = Body(outer)
        x, child = body.inputs[0], body.child("child")
        for _ in range(calls):
            x = body.call(child, x)
        body.give(x)
        inner = outer
    return inner
