"""Trees of arguments as MegEngine stores them: a TreeDef and a flat list of leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...errors import LoadError
from .stand_ins import GlobalRef, Instance

MAX_TREE_DEPTH = 50
DICTS = ("dict", "OrderedDict", "defaultdict", "QParams", "LSQParams")


def unflatten(definition: Any, leaf: Callable[[Instance], Any], depth: int = 0) -> Any:
    """The tree that a TreeDef describes; ``leaf`` gives the value for each LeafDef, in order.

    QParams become dicts; a container class of the user's becomes a tuple of its parts.
    """
    if depth > MAX_TREE_DEPTH:
        raise LoadError("TM1006", f"arguments are nested more than {MAX_TREE_DEPTH} deep")
    if not isinstance(definition, Instance):
        raise LoadError("TM1007", f"{definition!r} does not describe arguments")
    if definition.short_name == "LeafDef":
        return leaf(definition)
    children = [unflatten(child, leaf, depth + 1) for child in definition.state["children_defs"]]
    kind = definition.state["type"]
    name = kind.name.rpartition(".")[2] if isinstance(kind, GlobalRef) else ""
    if name in DICTS:
        return dict(zip(definition.state["aux_data"], children, strict=True))
    if name == "list":
        return children
    if name == "slice":
        return slice(*children)
    return tuple(children)


def unflatten_values(definition: Any, values: Sequence[Any]) -> Any:
    """The tree of a TreeDef with ``values`` as its leaves, all of them used."""
    remaining = iter(values)
    tree = unflatten(definition, lambda _: next(remaining))
    if next(remaining, remaining) is not remaining:
        raise LoadError("TM1007", "a call has more arguments than its structure names")
    return tree


def merged(nodes: Sequence[Any], constants: Sequence[tuple[int, Any]]) -> list[Any]:
    """Nodes in their order, with each constant put at its position in the merged list."""
    return list(_merge(nodes, constants))


def _merge(nodes: Sequence[Any], constants: Sequence[tuple[int, Any]]) -> Iterator[Any]:
    waiting = iter(nodes)
    count = 0
    for position, value in constants:
        if not count <= position <= count + len(nodes):
            raise LoadError("TM1007", "the positions of constant arguments are out of order")
        while count < position:
            count += 1
            yield next(waiting)
        count += 1
        yield value
    yield from waiting
