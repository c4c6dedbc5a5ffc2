"""Nested Python values (tuple, list, dict, slice) with Nodes and constants at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Tree = Any  # tuple | list | dict | slice of Trees, or a leaf


def leaves(tree: Tree) -> Iterator[Any]:
    """The leaves in order; dict values in the dict's own order, a slice as start, stop, step."""
    if isinstance(tree, (tuple, list)):
        for child in tree:
            yield from leaves(child)
    elif isinstance(tree, dict):
        for child in tree.values():
            yield from leaves(child)
    elif isinstance(tree, slice):
        yield from leaves((tree.start, tree.stop, tree.step))
    else:
        yield tree


def map_leaves(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """A tree of the same structure, each leaf replaced by ``function(leaf)``."""
    if isinstance(tree, tuple):
        children = [map_leaves(function, child) for child in tree]
        return tuple.__new__(type(tree), children) if hasattr(tree, "_fields") else tuple(children)
    if isinstance(tree, list):
        return [map_leaves(function, child) for child in tree]
    if isinstance(tree, dict):
        return {key: map_leaves(function, child) for key, child in tree.items()}
    if isinstance(tree, slice):
        return slice(*(map_leaves(function, part) for part in (tree.start, tree.stop, tree.step)))
    return function(tree)


def replaced(tree: Tree, old: Any, new: Any) -> Tree:
    """The tree with ``new`` at each leaf that is ``old``."""
    return map_leaves(lambda leaf: new if leaf is old else leaf, tree)
