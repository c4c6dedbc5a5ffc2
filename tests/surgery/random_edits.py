"""Random edits of a model: each is done and leaves a sound graph, or raises and changes nothing."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.ir import Expr, InternalGraph, ModuleNode, TensorNode, TracedModule

FUNCTIONS = ("aten::relu", "aten::neg", "torch.sigmoid", "torch.abs", "aten::tanh")


class Scale(torch.nn.Module):
    """A module that keeps the shape of what it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(0.75))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * self.factor - 0.1


def traced_scale(shape: tuple[int, ...]) -> TracedModule:
    return tmconvert.trace(Scale(), torch.zeros(shape))


class Edits:
    """Edits one model at random. ``done`` and ``refused`` count.

    An edit of a submodule after which its callers do not fit, as ``lint`` of the model says, is taken back,
    and counts as ``undone``.
    """

    def __init__(self, module: TracedModule, seed: int) -> None:
        self.module = module
        self.rng = random.Random(seed)
        self.done = self.refused = self.undone = 0

    def step(self) -> str:
        """Does one edit, checks what it leaves, and returns its kind."""
        graphs = self.graphs()
        number = self.rng.randrange(len(graphs))
        graph = graphs[number]
        kind = self.rng.choice(self.kinds(graph))
        kept = None if graph is self.module.graph else copy.deepcopy(self.module)
        before, edits = [str(each) for each in graphs], [each.edits for each in graphs]
        try:
            kind(graph)
        except TmconvertError:
            self.refused += 1
            assert [str(each) for each in graphs] == before, (
                f"{kind.__name__} was refused, and changed a graph"
            )
            assert [each.edits for each in graphs] == edits, f"{kind.__name__} was refused, and counted"
            return kind.__name__
        self.done += 1
        graph.lint()
        if kept is not None:
            try:
                self.module.recompile()
            except TmconvertError:
                # what a submodule takes and returns may not fit its callers, which only they can tell
                self.module = kept
                self.undone += 1
        return kind.__name__

    def graphs(self) -> list[InternalGraph]:
        return [graph for _, each in self.module.modules() for graph in each.graphs.values()]

    def kinds(self, graph: InternalGraph) -> list[Callable[[InternalGraph], None]]:
        """Returns the edits for a graph; frequent ones several times."""
        kinds: list[Callable[[InternalGraph], None]] = [
            *[self.insert, self.insert, self.replace, self.replace, self.delete, self.rename],
            *[self.other_function, self.arguments, self.erase, self.move, self.call_again],
            *[self.copy_node, self.some_uses, self.weights, self.add_module],
        ]
        if graph is self.module.graph:
            kinds += [self.add_input, self.outputs]
        return kinds

    # ---- edits

    def insert(self, graph: InternalGraph) -> None:
        old = self.node(graph)
        with graph.insert_exprs(self.rng.choice([None, self.expr(graph)])) as g:
            new = g.call(self.rng.choice(FUNCTIONS), old)
            if self.rng.random() < 0.5:
                new = new * self.rng.choice([2, 0.5, np.float32(1.5)]) + old
        if self.rng.random() < 0.7:
            with suppress(TmconvertError):  # the insertion stays
                graph.replace_node({old: new})

    def replace(self, graph: InternalGraph) -> None:
        old = self.node(graph)
        alike = [node for node in self.tensors(graph) if (node.shape, node.dtype) == (old.shape, old.dtype)]
        new = self.rng.choice(alike) if self.rng.random() < 0.8 else self.node(graph)
        graph.replace_node({old: new})
        if self.rng.random() < 0.3:
            graph.compile()

    def delete(self, graph: InternalGraph) -> None:
        node = self.node(graph)
        assert node.expr is not None
        tensors = [each for each in node.expr.inputs if isinstance(each, TensorNode)]
        if tensors:
            graph.replace_node({node: tensors[0]})  # the first of two edits: the second is never refused
            graph.compile()

    def rename(self, graph: InternalGraph) -> None:
        self.node(graph).name = self.rng.choice(
            ["scores", "x", "relu_out", f"node_{self.rng.random()}"[:9], ""]
        )

    def other_function(self, graph: InternalGraph) -> None:
        expr = self.expr(graph)
        if expr.op == "call_function":
            expr.function = self.rng.choice([*FUNCTIONS, "aten::conv2d"])  # type: ignore[attr-defined]

    def arguments(self, graph: InternalGraph) -> None:
        expr = self.expr(graph)
        if expr.op.startswith("call"):
            place = self.rng.randrange(max(1, len(expr.args)))
            args = (*expr.args[:place], self.node(graph), *expr.args[place + 1 :])
            graph.set_arguments(expr, args, expr.kwargs)

    def erase(self, graph: InternalGraph) -> None:
        graph.erase_node(self.node(graph))

    def move(self, graph: InternalGraph) -> None:
        self.rng.choice([self.node(graph).append, self.node(graph).prepend])(self.node(graph))

    def call_again(self, graph: InternalGraph) -> None:
        calls = [expr for expr in graph if expr.op == "call_module"]
        if calls:
            call = self.rng.choice(calls)
            owner = call.args[0].owner
            old = self.node(graph)
            with graph.insert_exprs() as g:
                new = g.call_module(owner if owner is not None else call.args[0], old)
            if isinstance(new, TensorNode) and (new.shape, new.dtype) == (old.shape, old.dtype):
                with suppress(TmconvertError):
                    graph.replace_node({old: new})

    def add_input(self, graph: InternalGraph) -> None:
        if len(graph.inputs) < 5:
            old = self.node(graph)
            new = graph.add_input_node(old.shape or (), old.dtype, "more")
            with suppress(TmconvertError):  # the input stays
                with graph.insert_exprs():
                    total = old + new
                graph.replace_node({old: total})

    def outputs(self, graph: InternalGraph) -> None:
        node = self.node(graph)
        if self.rng.random() < 0.5 and len(graph.outputs) < 4:
            graph.add_output_node(node)
        else:
            graph.reset_outputs([graph.outputs[0], {"more": node}])

    def copy_node(self, graph: InternalGraph) -> None:
        old = self.node(graph)
        with graph.inserting_after(old):
            new = graph.node_copy(old)
        if isinstance(new, TensorNode):
            with suppress(TmconvertError):  # the copy stays
                old.replace_all_uses_with(new)

    def some_uses(self, graph: InternalGraph) -> None:
        old, new = self.node(graph), self.node(graph)
        old.replace_all_uses_with(new, delete_user_cb=lambda user: self.rng.random() < 0.5)

    def weights(self, graph: InternalGraph) -> None:
        owners = [each for _, each in self.module.modules() if each.tensors]
        if owners:
            owner = self.rng.choice(owners)
            name = self.rng.choice(list(owner.tensors))
            array = owner.tensors[name]
            if array.dtype.kind == "f":
                owner.add_tensor(name, array * np.float32(0.75))

    def add_module(self, graph: InternalGraph) -> None:
        """Calls a new module in place of a value: one of PyTorch, or a part of the model itself."""
        old = self.node(graph)
        if old.dtype != np.float32 or old.shape is None:
            return
        with graph.insert_exprs() as g:
            new = g.call_module(traced_scale(old.shape), old)
        with suppress(TmconvertError):  # the call stays
            graph.replace_node({old: new})

    # ---- choices

    def tensors(self, graph: InternalGraph) -> list[TensorNode]:
        nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
        return [
            node
            for node in nodes
            if not isinstance(node, ModuleNode) and isinstance(node, TensorNode) and node.dtype is not None
        ]

    def node(self, graph: InternalGraph) -> TensorNode:
        return self.rng.choice(self.tensors(graph))

    def expr(self, graph: InternalGraph) -> Expr:
        return self.rng.choice(list(graph) or [graph.inputs[-1].expr])  # type: ignore[list-item]
