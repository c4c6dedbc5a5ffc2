"""Nested Python values (tuple, list, dict, slice) with Nodes and constants as leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import attrgetter
from typing import Any, TypeVar

Leaf = TypeVar("Leaf")
Tree = Any  # tuple | list | dict | slice of Trees, or a leaf


class _Branches(dict[type, Callable[[Any], Collection[Any]] | None]):
    """Maps the type of a tree to the function that returns its children; a dict lookup is the fastest way."""

    def __missing__(self, kind: type) -> Callable[[Any], Collection[Any]] | None:
        if issubclass(kind, dict):
            parts: Callable[[Any], Collection[Any]] | None = dict.values
        elif issubclass(kind, slice):
            parts = attrgetter("start", "stop", "step")
        else:
            parts = tuple if issubclass(kind, (tuple, list)) else None
        self[kind] = parts
        return parts


_parts = _Branches()
_PLAIN = frozenset({int, float, bool, str, type(None)})  # most leaves are of these types


def leaves(tree: Tree) -> list[Any]:
    """Returns the leaves in order; dict values in the dict's own order, a slice as start, stop, step."""
    found: list[Any] = []
    _gather((tree,), found)
    return found


def _gather(trees: Collection[Tree], found: list[Any]) -> None:
    for tree in trees:
        parts = _parts[type(tree)]
        if parts is None:
            found.append(tree)
        elif tree:
            _gather(parts(tree), found)


def leaves_of(kind: type[Leaf], tree: Tree) -> list[Leaf]:
    """Returns the leaves that are instances of ``kind``, in order; faster than to filter all leaves.

    ``kind`` is no class of plain values, which are skipped without a look at their classes.
    """
    assert kind not in _PLAIN
    found: list[Leaf] = []
    _gather_of(kind, (tree,), found)
    return found


def _gather_of(kind: type[Leaf], trees: Collection[Tree], found: list[Leaf]) -> None:
    for tree in trees:
        type_ = type(tree)
        if type_ in _PLAIN:
            continue
        parts = _parts[type_]
        if parts is None:
            if isinstance(tree, kind):
                found.append(tree)
        elif tree:
            _gather_of(kind, parts(tree), found)


def map_leaves(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """Returns a tree of the same structure, with each leaf replaced by ``function(leaf)``."""
    kind = type(tree)
    parts = _parts[kind]
    if parts is None:
        return function(tree)
    made = [
        function(part) if _parts[type(part)] is None else map_leaves(function, part) for part in parts(tree)
    ]
    if kind is tuple:  # the kinds that are most frequent come first
        return tuple(made)
    if kind is list:
        return made
    if isinstance(tree, tuple):
        return tuple.__new__(type(tree), made) if hasattr(tree, "_fields") else tuple(made)
    if isinstance(tree, list):
        return made
    if isinstance(tree, dict):
        return dict(zip(tree, made, strict=True))
    return slice(*made)


def map_objects(function: Callable[[Any], Any], trees: dict[str, Tree]) -> dict[str, Tree]:
    """Returns ``map_leaves`` of the values, for a function that returns numbers, texts and None as they are.

    It is not called for most of these, which makes it faster.
    """
    return {name: tree if type(tree) in _PLAIN else _mapped(function, tree) for name, tree in trees.items()}


def _mapped(function: Callable[[Any], Any], tree: Tree) -> Tree:
    is_plain = type(tree) is list and _PLAIN.issuperset(map(type, tree))
    return list(tree) if is_plain else map_leaves(function, tree)


def replaced(tree: Tree, old: Any, new: Any) -> Tree:
    """Returns the tree with ``new`` at each leaf that is ``old``."""
    return map_leaves(lambda leaf: new if leaf is old else leaf, tree)
