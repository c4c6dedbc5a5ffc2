"""The same edit in a traced model and in PyTorch: each call of a function gets another call after it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

import tmconvert
from tests.surgery.edited import arrays_of, compare
from tmconvert.frontends.torch.names import name_of
from tmconvert.ir import CallFunction, CallMethod, Expr, Node, TensorNode, TracedModule
from tmconvert.ir.tree import map_leaves

Target = tuple[bool, str]

# what is inserted after a call: in a graph, and in PyTorch
CHANGES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "relu": (lambda g, x: g.call(torch.relu, x), torch.relu),
    "tanh": (lambda g, x: g.call("aten::tanh", x), torch.tanh),
    "scale": (lambda g, x: x * 0.5 + 0.25, lambda x: x * 0.5 + 0.25),
    "clamp": (lambda g, x: torch.clamp(x, -0.5, 0.75), lambda x: torch.clamp(x, -0.5, 0.75)),
}


def target_of(expr: Expr) -> Target | None:
    """Returns the function or method of a call with one floating-point result."""
    if len(expr.outputs) != 1 or expr.op not in ("call_function", "call_method"):
        return None
    node = expr.outputs[0]
    if not isinstance(node, TensorNode) or node.dtype is None or node.dtype.kind != "f":
        return None
    assert isinstance(expr, (CallFunction, CallMethod))
    return isinstance(expr, CallMethod), str(expr.target)


def targets(module: TracedModule) -> list[Target]:
    """Returns the functions and methods that the graphs of a model call."""
    exprs = [expr for _, each in module.modules() for graph in each.graphs.values() for expr in graph]
    found = dict.fromkeys(target_of(expr) for expr in exprs)
    return [target for target in found if target is not None]


def edit_graphs(module: TracedModule, target: Target, change: str) -> int:
    """Inserts ``change`` after each call of ``target``; returns how many there were."""
    count = 0
    for _, each in module.modules():
        for graph in each.graphs.values():
            for expr in [expr for expr in graph if target_of(expr) == target]:
                with graph.insert_exprs(expr) as g:
                    made = CHANGES[change][0](g, expr.outputs[0])
                graph.replace_node({expr.outputs[0]: made})
                count += 1
    return count


def executed(module: TracedModule, inputs: Sequence[np.ndarray], target: Target) -> int:
    """Returns how often a run of a model calls ``target``."""
    counter = _Counter(module)
    counter.target = target
    counter.run(*inputs)
    return counter.count


class _Counter(tmconvert.Interpreter):
    """Counts the calls of one target."""

    target: Target
    count = 0

    def run_node(self, node: Node) -> Any:
        assert node.expr is not None
        self.count += target_of(node.expr) == self.target
        return super().run_node(node)


class Changed(TorchFunctionMode):
    """Does ``change`` to the result of each call of ``target`` in PyTorch."""

    def __init__(self, target: Target, change: str) -> None:
        super().__init__()
        self.target, self.change, self.count = target, CHANGES[change][1], 0

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = name_of(function)
        if (name.is_method, name.text) != self.target or not isinstance(result, torch.Tensor):
            return result
        if not result.is_floating_point():
            return result
        self.count += 1
        return self.change(result)


def changed_in_pytorch(
    module: torch.nn.Module, inputs: tuple[Any, ...], target: Target, change: str
) -> tuple[Any, int]:
    """Returns what a module of PyTorch computes with the edit, and how many calls it met."""
    mode = Changed(target, change)
    with torch.no_grad(), mode:
        result = module(*inputs)
    return result, mode.count


def choices(module: TracedModule, seed: int, count: int) -> list[tuple[Target, str]]:
    """Returns functions of a model to edit, with a change for each."""
    rng = random.Random(seed)
    found = targets(module)
    return [(target, rng.choice(list(CHANGES))) for target in rng.sample(found, min(count, len(found)))]


def judged(
    module: TracedModule, source: torch.nn.Module, inputs: tuple[Any, ...], seed: int, count: int
) -> int:
    """Compares ``count`` edits of a traced model with the same edits in PyTorch; returns how many there were.

    Calls that PyTorch does not make, as the parts of an attention, are left out.
    """
    arrays = arrays_of(map_leaves(as_array, inputs))
    done = 0
    for target, change in choices(module, seed, 100):
        if done == count:
            break
        expected, calls = changed_in_pytorch(source, inputs, target, change)
        if not calls or executed(module, arrays, target) != calls:
            continue
        twin = copy.deepcopy(module)
        edit_graphs(twin, target, change)
        compare(twin(*arrays), arrays_of(map_leaves(as_array, expected)), 1e-3)
        done += 1
    return done


def as_array(leaf: Any) -> Any:
    """Returns the array of a tensor, else what is given."""
    return leaf.detach().numpy() if isinstance(leaf, torch.Tensor) else leaf
