"""Graphs for the tests of passes: random inputs, random networks, and what must hold of any pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import Constant, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.text import digest
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.ir.verifier import verify_graph
from tmconvert.symbolics.registry import catalogue


def weights(*shapes: tuple[int, ...], dtype: str = "float32") -> dict[str, np.ndarray]:
    """Constants for ``parse_graph`` by digest; the same for the same shapes."""
    arrays = [np.random.default_rng(i).standard_normal(shape).astype(dtype) for i, shape in enumerate(shapes)]
    return {digest(array): array for array in arrays}


def random_inputs(graph: InternalGraph, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for node in graph.inputs:
        assert isinstance(node, TensorNode)
        arrays.append((rng.standard_normal(node.type.shape) * 3).astype(node.type.dtype))
    return arrays


def run(graph: InternalGraph, inputs: list[np.ndarray]) -> list[np.ndarray]:
    def evaluate(expr: Any, args: Any, kwargs: Any) -> Any:
        op = catalogue()[expr.function]
        return map_leaves(np.asarray, op.evaluate(list(args), kwargs))

    return [np.asarray(leaf) for leaf in leaves(Interpreter(graph, evaluate=evaluate).run(*inputs))]


def apply(step: Any, graph: InternalGraph) -> bool:
    """Runs a pass and checks what holds of all; whether it changed the graph."""
    return bool(recorded(step, graph))


def refusals(step: Any, graph: InternalGraph) -> list[str]:
    """Why a pass leaves a graph as it is: its refusals without the names of nodes."""
    record = recorded(step, graph)
    assert not record
    return [event.text.removeprefix("stays: ") for event in record.refused]


def recorded(step: Any, graph: InternalGraph) -> Any:
    """Runs a pass and checks what holds of all: valid, same values, and an honest record of changes."""
    before, text = graph.copy(), graph.to_text()
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    if is_symbolic([node.shape for node in nodes if isinstance(node, TensorNode)]):
        record = step.run(graph)  # there is nothing to compute for sizes that are not known
        verify_graph(graph, catalogue())
        assert bool(record) == (graph.to_text() != text)
        return record
    inputs = random_inputs(graph)
    names = [node.name for node in graph.outputs]
    expected = run(before, inputs)
    record = step.run(graph)
    verify_graph(graph, catalogue())
    if hasattr(step, "ensures"):
        step.ensures(graph)
    assert bool(record) == (graph.to_text() != text), f"{step.name} reports changed={bool(record)}"
    results = run(graph, inputs)
    assert len(results) == len(expected) == len(names)
    for result, value in zip(results, expected, strict=True):
        assert result.dtype == value.dtype
        np.testing.assert_allclose(result, value, rtol=1e-4, atol=1e-4)
    return record


class Net:
    """Writes a graph op by op: ``y = net("aten::relu", x)``."""

    def __init__(self) -> None:
        self.graph = InternalGraph("net")
        self.emitter = GraphEmitter(self.graph, catalogue(), made_by="test", name="n")
        self.rng = np.random.default_rng(0)

    def input(self, *shape: int, dtype: Any = np.float32) -> TensorNode:
        node = TensorNode(self.graph.free_name("x"), shape, np.dtype(dtype))
        self.graph.add_input(node)
        return node

    def constant(self, *shape: int) -> TensorNode:
        """A random constant, large enough or not."""
        array = self.rng.standard_normal(shape).astype(np.float32)
        node = TensorNode(self.graph.free_name("c"), shape, array.dtype)
        self.graph.insert(Constant(array, result=node, made_by="test"))
        return node

    def __call__(self, op: str, *args: Any, **attributes: Any) -> Any:
        return self.emitter.call(op, *args, **attributes)

    def conv(self, x: TensorNode, out_channels: int, *, kernel: int = 1) -> TensorNode:
        weight = self.constant(out_channels, x.type.shape[1], kernel, kernel)
        return self("aten::conv2d", x, weight, None, [1, 1], [kernel // 2] * 2, [1, 1], 1)

    def give(self, *nodes: TensorNode) -> InternalGraph:
        self.graph.set_result(tuple(nodes))
        verify_graph(self.graph, catalogue())
        return self.graph
