"""Nested Python values (tuple, list, dict, slice) with Nodes and constants at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

Tree = Any  # tuple | list | dict | slice of Trees, or a leaf


class _Branches(dict[type, Callable[[Any], Iterable[Any]] | None]):
    """The parts of a tree by its type, None of a leaf. Trees are walked for whatever happens to a graph: a
    look-up is fastest."""

    def __missing__(self, kind: type) -> Callable[[Any], Iterable[Any]] | None:
        if issubclass(kind, dict):
            parts: Callable[[Any], Iterable[Any]] | None = dict.values
        elif issubclass(kind, slice):
            parts = attrgetter("start", "stop", "step")
        else:
            parts = iter if issubclass(kind, (tuple, list)) else None
        self[kind] = parts
        return parts


_parts = _Branches()


def leaves(tree: Tree) -> list[Any]:
    """The leaves in order; dict values in the dict's own order, a slice as start, stop, step."""
    found: list[Any] = []
    _gather((tree,), found)
    return found


def _gather(trees: Iterable[Tree], found: list[Any]) -> None:
    for tree in trees:
        parts = _parts[type(tree)]
        if parts is None:
            found.append(tree)
        else:
            _gather(parts(tree), found)


def map_leaves(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """A tree of the same structure, each leaf replaced by ``function(leaf)``."""
    if _parts[type(tree)] is None:
        return function(tree)
    if isinstance(tree, tuple):
        children = [map_leaves(function, child) for child in tree]
        return tuple.__new__(type(tree), children) if hasattr(tree, "_fields") else tuple(children)
    if isinstance(tree, list):
        return [map_leaves(function, child) for child in tree]
    if isinstance(tree, dict):
        return {key: map_leaves(function, child) for key, child in tree.items()}
    return slice(*(map_leaves(function, part) for part in (tree.start, tree.stop, tree.step)))


def replaced(tree: Tree, old: Any, new: Any) -> Tree:
    """The tree with ``new`` at each leaf that is ``old``."""
    return map_leaves(lambda leaf: new if leaf is old else leaf, tree)
