"""Candidates from a model of any kind: some calls of its graph, whose operands become inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.container.writer import save_container
from tmconvert.errors import TmconvertError
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.ir.expr import Constant, Expr, GetAttr, Input
from tmconvert.ir.extract import cut_graph
from tmconvert.ir.flatten import flatten_module

SMALL = 16  # elements of a constant that is kept


class GraphCandidates:
    """The calls of a flat graph; ``write`` makes a container of some of them.

    >>> GraphCandidates(tmconvert.load("net.tm")).write([3, 4], Path("part.tm"))  # doctest: +SKIP
    """

    suffix = ".tm"

    def __init__(self, module: TracedModule) -> None:
        self.module = module
        graph = flatten_module(module).graph
        assert graph is not None
        calls = [each for each in graph if not isinstance(each, (Input, Constant, GetAttr))]
        self.names = [[node.name for node in each.outputs if isinstance(node, TensorNode)] for each in calls]
        self.operands = [_operands(each) for each in calls]
        self.read = {name for names in self.operands for name in names}
        self.read |= {node.name for node in graph.outputs}
        self.has_weights = True
        self.originals: list[tuple[dict[str, Any], str, Any]] = []

    @property
    def count(self) -> int:
        return len(self.names)

    def module_of(self, kept: Sequence[int]) -> TracedModule:
        """Returns a model of some calls. Raises TmconvertError where they cannot be cut out."""
        made = [name for each in kept for name in self.names[each]]
        used = list(dict.fromkeys(name for each in kept for name in self.operands[each]))
        free = [name for name in made if name not in used]
        outputs = [name for name in free if name in self.read] or free
        module = flatten_module(self.module)
        module.example = None
        assert module.graph is not None
        cut_graph(module.graph, [name for name in used if name not in made], outputs, {})
        if not self.has_weights:
            _make_up_constants(module)
        return module

    def with_reader(self, kept: Sequence[int]) -> list[int] | None:
        """Returns the calls and the first other one that reads a result of theirs; None without one."""
        made = {name for each in kept for name in self.names[each]}
        readers = (each for each in range(self.count) if each not in kept and made & {*self.operands[each]})
        found = next(readers, None)
        return None if found is None else sorted([*kept, found])

    def write(self, kept: Sequence[int], path: Path) -> bool:
        """Writes the container of some calls; returns whether that is possible."""
        try:
            save_container(self.module_of(kept), path)
        except TmconvertError:
            return False
        return True

    def drop_weights(self, drops: bool = True) -> None:
        """Replaces large float weights by made-up ones of the same type and shape, or takes them back."""
        self.has_weights = not drops
        random = np.random.default_rng(0)
        for _, each in self.module.modules():
            for name, value in list(each.tensors.items()):
                if drops and _is_weight(value):
                    self.originals.append((each.tensors, name, value))
                    each.tensors[name] = random.standard_normal(value.shape).astype(value.dtype)
        while not drops and self.originals:
            tensors, name, value = self.originals.pop()
            tensors[name] = value


def _operands(expr: Expr) -> list[str]:
    """Returns the names of the tensors that a call takes, but for constants."""
    return [
        node.name
        for node in expr.inputs
        if isinstance(node, TensorNode) and not isinstance(node.expr, (Constant, GetAttr))
    ]


def _is_weight(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > SMALL


def _make_up_constants(module: TracedModule) -> None:
    random = np.random.default_rng(0)
    assert module.graph is not None
    for expr in module.graph:
        if isinstance(expr, Constant) and _is_weight(expr.value):
            expr.stored = random.standard_normal(expr.value.shape).astype(expr.value.dtype)
