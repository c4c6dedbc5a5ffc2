"""Modules of a flat file, whose operators have no module paths: by the names of parameters and tensors.

An operator that reads ``layer1.0.conv1.weight`` is in the module ``layer1.0.conv1``. The other operators are
placed by the names of their results, such as ``layer1_0_add_out``, or ``0_add_out`` in a list of modules: in
the longest module that the name begins with, else in a group of neighbours whose names begin alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from tmconvert.frontends.shared.view_graph import Path, ViewGraph

_PARAMETER = r"(?:weight|bias|kernel|gamma|beta)"
# layer1.0.conv1.weight, attn.in_proj_weight; but not tfl.pseudo_const3
_DOTTED = re.compile(rf"(?P<owner>.+)[./]\w*{_PARAMETER}\w*")
_UNDERSCORED = re.compile(rf"(?P<owner>.+?)_{_PARAMETER}(?:_\d+)*")  # layer1_0_conv1_weight_1
# what follows the names of a module and of its operator in the name of a result
_ENDING = re.compile(r"(?:_(?:out|output)(?:_.*)?|(?:[._]\d+)*)$")
LONGEST = 300  # characters of a name that are read
MOST_NAMES = 8  # of a module
FAR = 200  # operators between those of a residual connection
_SEPARATOR = re.compile(r"[._]")


def infer_modules(graph: ViewGraph, reports: Iterable[Mapping[str, Any]] = ()) -> None:
    """Sets the modules of a graph in which no node has one, and names operators after their parameters.

    ``reports`` of quantization noise have the modules of layers, whose names are those of tensors.
    """
    owners = {number: owner for number in range(len(graph.nodes)) if (owner := _owner(graph, number))}
    layers = {layer["name"]: layer.get("module") for report in reports for layer in report["layers"]}
    for number, owner in owners.items():
        node = graph.nodes[number]
        if any(node.name == graph.tensors[index].name for index in node.outputs):
            node.name = owner  # the operator has no name of its own
    if not any(node.module for node in graph.nodes):
        _Places(graph, owners, {name: path for name, path in layers.items() if isinstance(path, str)}).fill()


def _owner(graph: ViewGraph, number: int) -> str:
    """Returns the module of the first parameter that a node reads; empty without one."""
    for index in graph.nodes[number].inputs:
        tensor = graph.tensors[index] if index >= 0 else None
        if tensor is not None and tensor.producer < 0 and index not in graph.inputs:
            name = tensor.name[:LONGEST]
            found = _DOTTED.fullmatch(name) or _UNDERSCORED.fullmatch(name)
            if found:
                return found["owner"].replace("/", ".")
    return ""


class _Places:
    """Finds the module of each node. ``known`` are paths of modules by prefixes of their results' names."""

    def __init__(self, graph: ViewGraph, owners: Mapping[int, str], layers: Mapping[str, str]) -> None:
        self.graph = graph
        self.owners = owners
        self.layers = layers
        paths = [tuple(owner.split(".")) for owner in owners.values() if "." in owner]
        paths += [tuple(path.split(".")) for path in layers.values() if path]
        prefixes = dict.fromkeys(path[:size] for path in paths for size in range(1, len(path) + 1))
        self.elements: dict[Path, set[str]] = {}
        for path in prefixes:
            self.elements.setdefault(path[:-1], set()).add(path[-1])
        self.known: dict[str, list[Path]] = {}
        names: dict[Path, list[str]] = {(): [""]}
        for path in sorted(prefixes, key=len):
            above = list(names[path[:-1]])
            if self._is_container(path[:-1]):
                above += names[path[:-2]]  # lists of modules are not called, and name no result
            names[path] = [f"{name}_{path[-1]}" for name in above][:MOST_NAMES]
            for name in names[path]:
                self.known.setdefault(name, []).append(path)

    def fill(self) -> None:
        nodes, names = self.graph.nodes, [self._name(number) for number in range(len(self.graph.nodes))]
        exact = [self._exact(number) for number in range(len(nodes))]
        later, before = _next_paths(exact), _next_paths(exact[::-1])[::-1]
        paths = [
            path or self._longest(names[number], before[number], later[number])
            for number, path in enumerate(exact)
        ]
        others = {number: _words(names[number]) for number, path in enumerate(paths) if not path}
        for number, path in _groups(others).items():
            paths[number] = path
        later = _next_paths(paths)
        for number, node in enumerate(nodes):
            if not exact[number]:
                paths[number] = self._inside(number, paths, later[number])
            node.module = paths[number]

    def _name(self, number: int) -> str:
        node = self.graph.nodes[number]
        return self.owners.get(number) or _ENDING.sub("", node.name[:LONGEST], count=1)

    def _exact(self, number: int) -> Path:
        """Returns the path that a parameter or a report has for a node; empty where none has one."""
        owner = self.owners.get(number, "")
        if "." in owner:
            return tuple(owner.split("."))
        names = [self.graph.tensors[index].name for index in self.graph.nodes[number].outputs]
        return next((tuple(path.split(".")) for name in names if (path := self.layers.get(name))), ())

    def _longest(self, name: str, before: Path, later: Path) -> Path:
        """Returns the longest known path that a name begins with: of several the one around a neighbour."""
        words = _words(name)
        for size in range(len(words), 0, -1):
            found = self.known.get("".join(f"_{word}" for word in words[:size]), [])
            near = [path for path in found if path in (before[: len(path)], later[: len(path)])]
            if near or len(found) == 1:
                return (near or found)[0]
        return ()

    def _inside(self, number: int, paths: list[Path], later: Path) -> Path:
        """Returns the path of a node whose name may be that of a module around it.

        The result of a module is named by the module that reads it. So a node at the root belongs to the
        module between whose nodes it is, or whose input it adds to the result. A module with numbered
        elements alone computes nothing: the node is in an element.
        """
        path, operands = paths[number], self.graph.producers(self.graph.nodes[number])
        last = paths[max(operands)] if operands else ()
        if not path and number:
            path = _common(paths[number - 1], later)
        if not path and last and self._adds_input(number, last[:1], paths):
            path = last[:1]
        while self._is_container(path) and last[: len(path)] == path and len(last) > len(path):
            path = last[: len(path) + 1]
        return path

    def _is_container(self, path: Path) -> bool:
        elements = self.elements.get(path, ())
        return bool(path) and bool(elements) and all(each.isdecimal() for each in elements)

    def _adds_input(self, number: int, module: Path, paths: list[Path]) -> bool:
        """Returns whether a node reads a tensor that comes into a module, too, besides its result."""
        node, tensors = self.graph.nodes[number], self.graph.tensors
        last = max(self.graph.producers(node))
        others = {
            index
            for index in node.inputs
            if index >= 0 and tensors[index].producer >= 0 and paths[tensors[index].producer] != paths[last]
        }
        return any(
            not others.isdisjoint(self.graph.nodes[other].inputs)
            for other in range(max(0, number - FAR), number)
            if paths[other][: len(module)] == module
        )


def _words(name: str) -> tuple[str, ...]:
    return tuple(filter(None, _SEPARATOR.split(name)))


def _common(one: Path, other: Path) -> Path:
    size = 0
    while size < min(len(one), len(other)) and one[size] == other[size]:
        size += 1
    return one[:size]


def _next_paths(paths: list[Path]) -> list[Path]:
    """Returns for each node the path of the next node that has one."""
    later: list[Path] = [()] * len(paths)
    for number in range(len(paths) - 2, -1, -1):
        later[number] = paths[number + 1] or later[number + 1]
    return later


def _groups(names: Mapping[int, tuple[str, ...]]) -> dict[int, Path]:
    """Returns the paths of nodes by the words that their names begin with.

    Nodes whose names begin alike are a module where they are near each other and their names differ: neither
    all activations of a model, ``relu_out_1`` and ``relu_out_7``, nor two equal operators.
    """
    members: dict[tuple[str, ...], list[int]] = {}
    for number, words in names.items():
        for size in range(1, len(words) + 1):
            members.setdefault(words[:size], []).append(number)
    modules = {
        words
        for words, numbers in members.items()
        if 1 < len(numbers) < len(names)
        and max(numbers) - min(numbers) < len(numbers) + len(numbers) // 4
        and len({names[number] for number in numbers}) > 1
    }
    paths = {}
    for number, words in names.items():
        sizes = [size for size in range(1, len(words) + 1) if words[:size] in modules]
        kept = [  # of modules with the same nodes only the innermost
            size
            for size, inner in pairwise([*sizes, 0])
            if not inner or len(members[words[:size]]) > len(members[words[:inner]])
        ]
        paths[number] = tuple("_".join(words[start:end]) for start, end in pairwise([0, *kept]))
    return paths
