"""Finds the matches of a pattern in a graph, without overlaps, in order of execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    Input,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
)
from tmconvert.ir.tree import Tree


class Wildcard:
    """Matches any value."""

    def __repr__(self) -> str:
        return "ANY"


ANY = Wildcard()


@dataclass
class Match:
    """One match: the values and calls of a graph that match a pattern.

    ``nodes_map`` has, for each node of the pattern, the node of the graph, or the constant that an input of
    the pattern matched. ``anchor`` is the first result, ``exprs`` are the matched calls in the order of the
    pattern; ``replacements`` are the new nodes, once they have replaced it. ``match["x"]`` is the node or
    constant that the input ``x`` of the pattern matched.
    """

    pattern: InternalGraph
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    calls: dict[Expr, Expr] = field(default_factory=dict)
    replacements: list[Node] = field(default_factory=list)

    @property
    def anchor(self) -> Node:
        return self.returning_nodes[0]

    @property
    def exprs(self) -> list[Expr]:
        return [self.calls[expr] for expr in self.pattern if expr in self.calls]

    @property
    def placeholder_nodes(self) -> list[Any]:
        """Returns the nodes or constants that the inputs of the pattern matched, in order."""
        return [self.nodes_map.get(node) for node in value_inputs(self.pattern)]

    @property
    def returning_nodes(self) -> list[Node]:
        """Returns the nodes that are replaced, in the order of the pattern's results."""
        return [self.nodes_map[node] for node in self.pattern.outputs]

    def __getitem__(self, name: str) -> Any:
        for node in self.pattern.inputs:
            if node.name == name:
                return self.nodes_map.get(node)
        raise KeyError(name)

    def copy(self) -> Match:
        """Returns a match whose dicts and lists can be changed alone."""
        return Match(self.pattern, dict(self.nodes_map), dict(self.calls))


def value_inputs(graph: InternalGraph) -> list[Node]:
    """Returns the inputs of a pattern or replacement; a traced graph has its module before them."""
    return [node for node in graph.inputs if not isinstance(node, ModuleNode)]


MatchFilter = Callable[[Match, InternalGraph, InternalGraph], bool]


def find_matches(
    graph: InternalGraph, pattern: InternalGraph, match_filters: Sequence[MatchFilter] = ()
) -> list[Match]:
    """Returns the matches of ``pattern``, the first in order of execution where two overlap.

    Each call of the graph is compared with the call that computes the first result of the pattern, so the
    time is linear in the size of the graph. A match is omitted if calls outside of it use its intermediate
    values.
    """
    anchors = _anchors(pattern)
    found: list[Match] = []
    taken: set[Expr] = set()
    for expr in graph:
        for match in _extended(Match(pattern), anchors, [expr], taken):
            if _is_closed(graph, match) and all(each(match, graph, pattern) for each in match_filters):
                found.append(match)
                taken.update(match.calls.values())
                break
    return found


def _anchors(pattern: InternalGraph) -> list[Expr]:
    """Returns the calls of the pattern from which all others are reached, the first result's first.

    Raises UsageError TM6054 for a pattern without calls, or in unconnected parts.
    """
    producers = [node.expr for node in pattern.outputs]
    results = [
        expr for expr in producers if expr is not None and not isinstance(expr, (Input, Constant, GetAttr))
    ]
    if not results or len(results) < len(producers):
        raise UsageError("TM6054", "a pattern must compute each of its results")
    before = {expr: _before(expr) for expr in results}
    anchors = [
        expr for expr in before if not any(expr in before[other] for other in before if other is not expr)
    ]
    reached = _nodes(before[anchors[0]])
    for anchor in anchors[1:]:
        nodes = _nodes(before[anchor])
        if not nodes & reached:
            raise UsageError("TM6054", "the results of a pattern must have a call or an input in common")
        reached |= nodes
    return anchors


def _nodes(calls: set[Expr]) -> set[Node]:
    """Returns the values that calls take and give, but modules."""
    return {
        node for call in calls for node in (*call.inputs, *call.outputs) if not isinstance(node, ModuleNode)
    }


def _before(expr: Expr) -> set[Expr]:
    """Returns the calls that an expression depends on, and itself."""
    found: set[Expr] = set()
    stack = [expr]
    while stack:
        current = stack.pop()
        if current not in found and not isinstance(current, (Input, Constant, GetAttr)):
            found.add(current)
            stack += [node.expr for node in current.inputs if node.expr is not None]
    return found


def _extended(
    match: Match, anchors: Sequence[Expr], candidates: Sequence[Expr], taken: set[Expr]
) -> Iterator[Match]:
    """Yields ``match`` with the first anchor at one of the candidates, and the others where they fit."""
    for candidate in candidates:
        trial = match.copy()
        if not _Comparison(trial, taken).is_same(anchors[0], candidate):
            continue
        if len(anchors) == 1:
            yield trial
        else:
            yield from _extended(trial, anchors[1:], _candidates(trial, anchors[1]), taken)


def _candidates(match: Match, anchor: Expr) -> list[Expr]:
    """Returns calls where an anchor may be, found from a matched value that it depends on."""
    nodes, path = _path(anchor, match)
    found: list[Expr] = []
    for step in path:
        users = dict.fromkeys(user for node in nodes for user in node.users)
        found = [user for user in users if _target(user) == _target(step)]
        nodes = [node for user in found for node in user.outputs]
    return found


def _path(anchor: Expr, match: Match) -> tuple[list[Node], list[Expr]]:
    """Returns a matched value, and the chain of the pattern's calls from its user to ``anchor``."""
    stack = [[anchor]]
    while stack:
        path = stack.pop()
        for node in path[0].inputs:
            value = match.nodes_map.get(node)
            if isinstance(value, Node) and not isinstance(value, ModuleNode):
                return [value], path
            if node.expr is not None:
                stack.append([node.expr, *path])
    raise UsageError("TM6054", "the results of a pattern must have a call or an input in common")


# operators that tracing records under the name of a method, and insertion under their own
_SPELLINGS = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "pow", "neg", "abs")},
    "__truediv__": "div",
    "__rtruediv__": "__rdiv__",
    "__radd__": "add",
    "__rmul__": "mul",
    **{f"__{name}__": name for name in ("lt", "le", "gt", "ge")},
}


def _target(expr: Expr) -> tuple[type[Expr], str]:
    name = getattr(expr, "function", None) or getattr(expr, "method", None) or ""
    return type(expr), _SPELLINGS.get(name, name)


class _Comparison:
    """Compares a pattern with a graph from results to operands, and notes what corresponds."""

    def __init__(self, match: Match, taken: set[Expr]) -> None:
        self.match = match
        self.taken = taken
        self.inputs = set(match.pattern.inputs)

    def is_same(self, pattern: Expr, expr: Expr) -> bool:
        """Whether a call, and all calls before it, match those of the pattern."""
        known = self.match.calls.get(pattern)
        if known is not None:
            return known is expr
        if expr in self.taken or expr in self.match.calls.values() or _target(pattern) != _target(expr):
            return False
        outputs = pattern.outputs, expr.outputs
        if not isinstance(expr, (CallFunction, CallMethod)) or len(outputs[0]) != len(outputs[1]):
            return False
        self.match.calls[pattern] = expr
        self.match.nodes_map.update(zip(*outputs, strict=True))
        return self._is_tree(pattern.args, expr.args) and self._is_tree(pattern.kwargs, expr.kwargs)

    def _is_tree(self, pattern: Tree, tree: Tree) -> bool:
        if pattern is ANY:
            return True
        if isinstance(pattern, Node):
            return self._is_node(pattern, tree)
        if isinstance(pattern, dict):
            is_like = isinstance(tree, dict) and pattern.keys() == tree.keys()
            return is_like and all(self._is_tree(pattern[key], tree[key]) for key in pattern)
        if isinstance(pattern, (list, tuple)):
            is_like = isinstance(tree, (list, tuple)) and len(pattern) == len(tree)
            return is_like and all(map(self._is_tree, pattern, tree))
        if isinstance(pattern, slice):
            parts = (pattern.start, pattern.stop, pattern.step)
            return isinstance(tree, slice) and self._is_tree(parts, (tree.start, tree.stop, tree.step))
        if isinstance(pattern, np.ndarray) or isinstance(tree, (Node, np.ndarray)):
            return isinstance(tree, np.ndarray) and np.array_equal(pattern, tree)
        return isinstance(pattern, bool) == isinstance(tree, bool) and bool(pattern == tree)

    def _is_node(self, pattern: Node, tree: Tree) -> bool:
        if isinstance(pattern, ModuleNode) and pattern not in self.inputs:
            return isinstance(tree, ModuleNode) and tree.class_name == pattern.class_name
        if pattern in self.match.nodes_map:
            known = self.match.nodes_map[pattern]
            if isinstance(known, Node) or isinstance(tree, (Node, np.ndarray)):
                return known is tree
            return bool(known == tree)
        if pattern in self.inputs:
            self.match.nodes_map[pattern] = tree
            return True
        producer = tree.expr if isinstance(tree, Node) else None
        if producer is None or pattern.expr is None:
            return False
        if isinstance(pattern.expr, GetAttr):  # any parameter or buffer, as in torch.fx
            self.match.nodes_map[pattern] = tree
            return isinstance(producer, GetAttr) and isinstance(tree, TensorNode)
        if isinstance(pattern.expr, Constant):
            self.match.nodes_map[pattern] = tree
            return isinstance(producer, Constant) and _is_constant(pattern.expr.value, producer.value)
        if not self.is_same(pattern.expr, producer):
            return False
        return self.match.nodes_map.get(pattern) is tree


def _is_constant(pattern: object, value: object) -> bool:
    """Whether a constant fits the pattern's: equal elements; one there fits many equal ones."""
    if not isinstance(pattern, np.ndarray) or not isinstance(value, np.ndarray):
        return pattern is value
    if pattern.size == 1:
        return bool(value.size and np.all(value == pattern.reshape(())))
    return np.array_equal(pattern, value)


def _is_closed(graph: InternalGraph, match: Match) -> bool:
    """Whether nothing outside of a match uses a value inside."""
    inside, returned = set(match.calls.values()), set(match.returning_nodes)
    return not any(
        graph.is_output(node) or any(user not in inside for user in node.users)
        for expr in inside
        for node in expr.outputs
        if node not in returned
    )
