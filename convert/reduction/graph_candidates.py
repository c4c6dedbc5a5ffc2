"""Candidates from a graph of any kind: containers of some of its calls, whose operands become inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.container.writer import save_container
from tmconvert.errors import TmconvertError
from tmconvert.formats.onnx.candidates import made_up
from tmconvert.frontends.torch.written_calls import MODULE, Edits
from tmconvert.ir import Node, TensorNode, TracedModule
from tmconvert.ir.expr import Constant, Expr, GetAttr, Input
from tmconvert.ir.extract import cut_graph
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.reduction.trials import Candidate, Failure


class GraphCandidates:
    """The calls of a flat graph; ``write`` makes a container of some of them.

    >>> GraphCandidates(tmconvert.load("net.tm")).write([3, 4], Path("folder"))  # doctest: +SKIP
    Candidate(model='folder/reduced.tm', inputs=())
    """

    suffix = ".tm"

    def __init__(self, module: TracedModule) -> None:
        self.module, self.edits = module, Edits()
        graph = flatten_module(module).graph
        assert graph is not None
        calls = [each for each in graph if not isinstance(each, (Input, Constant, GetAttr))]
        self.names = [[node.name for node in each.outputs if isinstance(node, TensorNode)] for each in calls]
        self.operands = [_operands(each) for each in calls]
        self.calls = [*map(_type, calls)]
        self.keywords = [[name for name, each in call.kwargs.items() if not _nodes(each)] for call in calls]
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
        _drop_unread(module)
        if not self.has_weights:
            _make_up_constants(module, self.edits)
        if self.edits.dropped or self.edits.sizes:
            self._edit(module, kept)
        return module

    def _edit(self, module: TracedModule, kept: Sequence[int]) -> None:
        """Leaves out arguments, and writes other sizes in place of integers and of those of the inputs."""
        assert module.graph is not None
        places = {self.names[each][0]: each for each in kept if self.names[each]}

        def leaf(value: object) -> Any:
            return self.edits.size(value) if type(value) is int else value

        for expr in module.graph:
            if isinstance(expr, (Constant, GetAttr)):
                continue
            place = places.get(expr.outputs[0].name, -1) if expr.outputs else -1
            rest = {k: each for k, each in expr.kwargs.items() if (place, k) not in self.edits.dropped}
            expr.args, expr.kwargs = map_leaves(leaf, expr.args), map_leaves(leaf, rest)
        for node in module.graph.inputs:
            if isinstance(node, TensorNode) and node.shape is not None:
                node.shape = tuple(map(leaf, node.shape))

    def sizes(self, kept: Sequence[int]) -> list[int]:
        """Returns the sizes of the inputs of calls, largest first."""
        graph = self.module_of(kept).graph
        assert graph is not None
        found = [node.shape or () for node in graph.inputs if isinstance(node, TensorNode)]
        return sorted({size for shape in found for size in shape if type(size) is int})[::-1]

    def attributes(self, kept: Sequence[int]) -> list[tuple[int, str | int]]:
        """Returns the arguments that calls may do without."""
        return [(each, name) for each in kept for name in self.keywords[each]]

    def named(self, failure: Failure) -> list[int]:
        """Returns the calls whose ops a failure names."""
        words = {each.rpartition("::")[2].rpartition(".")[2] for each in failure.ops}
        return [number for number, each in enumerate(self.calls) if each.rpartition(".")[2] in words]

    def with_reader(self, kept: Sequence[int]) -> list[int] | None:
        """Returns the calls and the first other one that reads a result of theirs; None without one."""
        made = {name for each in kept for name in self.names[each]}
        readers = (each for each in range(self.count) if each not in kept and made & {*self.operands[each]})
        found = next(readers, None)
        return None if found is None else sorted([*kept, found])

    def write(self, kept: Sequence[int], folder: Path) -> Candidate | None:
        """Writes the container of some calls; returns None where they cannot be cut out."""
        path = folder / f"{MODULE}.tm"
        try:
            save_container(self.module_of(kept), path)
        except TmconvertError:
            return None
        return Candidate(str(path))

    def drop_weights(self, drops: bool = True) -> None:
        """Replaces float weights by made-up ones of the same type and shape, or takes them back."""
        self.has_weights = not drops
        random = np.random.default_rng(0)
        for _, each in self.module.modules():
            for name, value in list(each.tensors.items()):
                if drops and _is_weight(value):
                    self.originals.append((each.tensors, name, value))
                    each.tensors[name] = made_up(random, value.shape, value.dtype)
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


def _type(expr: Expr) -> str:
    return str(getattr(expr, "function", getattr(expr, "method", "")))


def _nodes(tree: object) -> list[Node]:
    return [each for each in leaves(tree) if isinstance(each, Node)]


def _is_weight(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 1


def _drop_unread(module: TracedModule) -> None:
    """Leaves a flat module only the tensors, and the modules without graphs, that its graph reads."""
    assert module.graph is not None
    read = {expr.name for expr in module.graph if isinstance(expr, GetAttr)}

    def part(source: TracedModule, prefix: str = "") -> TracedModule:
        if prefix[:-1] in read:
            return source
        made = TracedModule(source.name, source.class_name, vocabulary=source.vocabulary)
        made.tensors = {name: each for name, each in source.tensors.items() if prefix + name in read}
        made.attributes, made.buffers = source.attributes, source.buffers & made.tensors.keys()
        parts = {name: part(each, f"{prefix}{name}.") for name, each in source.children.items()}
        made.children = {
            name: each
            for name, each in parts.items()
            if each.tensors or each.children or prefix + name in read
        }
        return made

    found = part(module)
    module.children, module.tensors = found.children, found.tensors


def _make_up_constants(module: TracedModule, edits: Edits) -> None:
    random = np.random.default_rng(0)
    assert module.graph is not None
    for expr in module.graph:
        if isinstance(expr, Constant) and _is_weight(expr.value):
            shape = tuple(map(edits.size, expr.value.shape))
            expr.stored = made_up(random, shape, expr.value.dtype)
