"""Maps the arguments of a call of a model (nested, by keyword, with constants) to its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError
from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.expr import Input
from tmconvert.ir.node import Node

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import TracedModule


def flat_inputs(module: TracedModule, args: tuple[object, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
    """Returns the arguments of a call in the order of the graph's inputs.

    Raises UsageError TM6003 for arguments that are not those of the model.

    >>> flat_inputs(module, ({"b": y, "a": x},), {"scale": s})  # doctest: +SKIP
    [x, y, s]
    """
    graph = module.graph
    if graph is None:
        return args
    nodes = graph.inputs[1:]
    has_parts = any(isinstance(arg, (dict, tuple)) or _has_arrays(arg) for arg in args)
    is_plain = not kwargs and not has_parts
    if is_plain and len(args) == len(nodes):
        return args
    is_exact = call_structure((module, *args), kwargs) in module.graphs
    if is_plain and not is_exact:
        return args
    given = _Given(graph, nodes, is_exact)
    for arg in args:
        given.positional(arg)
    for name, arg in kwargs.items():
        given.keyword(name, arg)
    return given.values()


class _Given:
    """The values of inputs that were found so far."""

    def __init__(self, graph: InternalGraph, nodes: list[Node], is_exact: bool) -> None:
        self.graph = graph
        self.names = {node: node.expr.name if isinstance(node.expr, Input) else node.name for node in nodes}
        self.free = list(nodes)
        self.found: dict[Node, Any] = {}
        self.is_exact = is_exact  # constants are those that the model was traced with

    def positional(self, arg: object) -> None:
        """Assigns an argument to the next inputs."""
        parts = self._parts(arg)
        self._assign(self.free[: len(parts)], parts)

    def keyword(self, name: str, arg: object) -> None:
        """Assigns an argument to the inputs of its name."""
        parts = self._parts(arg)
        nodes = [node for node in self.free if self.names[node] == name]
        nodes = nodes or [node for node in self.free if self.names[node].startswith((f"{name}_", f"{name}."))]
        if parts and not nodes:
            raise self._misfit(f"has no input {name}")
        self._assign(nodes, parts)

    def values(self) -> list[Any]:
        """Returns the values of all inputs, in order."""
        if self.free:
            raise self._misfit(f"lacks its input {self.names[self.free[0]]}")
        return [self.found[node] for node in self.names]

    def _parts(self, arg: object) -> list[tuple[str, Any]]:
        parts = list(_leaves(arg, ""))
        return [(path, leaf) for path, leaf in parts if not self.is_exact or hasattr(leaf, "shape")]

    def _assign(self, nodes: list[Node], parts: list[tuple[str, Any]]) -> None:
        if len(nodes) != len(parts):
            raise self._misfit(f"takes {len(self.names)} inputs, which these arguments do not fit")
        order = [self._position(node, parts) for node in nodes]
        if len({path for path, _ in parts}) < 2 or sorted(order) != list(range(len(parts))):
            order = list(range(len(parts)))
        for node, place in zip(nodes, order, strict=True):
            self.found[node] = parts[place][1]
            self.free.remove(node)

    def _position(self, node: Node, parts: list[tuple[str, Any]]) -> int:
        """Returns the position of the part whose path ends the name of an input; -1 without any."""
        name = self.names[node].replace(".", "_")
        return next((i for i, (path, _) in enumerate(parts) if path and name.endswith(f"_{path}")), -1)

    def _misfit(self, reason: str) -> UsageError:
        names = ", ".join(self.names.values())
        return UsageError(
            "TM6003",
            f"{self.graph.name or 'the model'} {reason}",
            notes=[("help", f"its inputs are {names}")],
        )


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the leaves with their paths, such as ``b_0``; a list of numbers is one array."""
    if isinstance(tree, dict):
        children: list[tuple[Any, Any]] = list(tree.items())
    elif isinstance(tree, tuple) or _has_arrays(tree):
        children = list(enumerate(tree))
    else:
        yield path, tree
        return
    for key, child in children:
        yield from _leaves(child, f"{path}_{key}" if path else str(key))


def _has_arrays(tree: object) -> bool:
    return isinstance(tree, list) and any(hasattr(item, "shape") or _has_arrays(item) for item in tree)
