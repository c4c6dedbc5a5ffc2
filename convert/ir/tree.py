"""Nested Python values (tuple, list, dict, slice) with Nodes and constants at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Tree = Any  # tuple | list | dict | slice of Trees, or a leaf


class _Branches(dict[type, bool]):
    """Whether a type has leaves. Trees are walked for whatever happens to a graph: a look-up is fastest."""

    def __missing__(self, kind: type) -> bool:
        known = self[kind] = issubclass(kind, (tuple, list, dict, slice))
        return known


_is_branch = _Branches()


def leaves(tree: Tree) -> list[Any]:
    """The leaves in order; dict values in the dict's own order, a slice as start, stop, step."""
    found: list[Any] = []
    _gather((tree,), found)
    return found


def _gather(trees: Iterable[Tree], found: list[Any]) -> None:
    for tree in trees:
        if not _is_branch[type(tree)]:
            found.append(tree)
        elif isinstance(tree, dict):
            _gather(tree.values(), found)
        elif isinstance(tree, slice):
            _gather((tree.start, tree.stop, tree.step), found)
        else:
            _gather(tree, found)


def map_leaves(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """A tree of the same structure, each leaf replaced by ``function(leaf)``."""
    if not _is_branch[type(tree)]:
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
