"""Argument trees in MegEngine's format: a TreeDef and a flat list of leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tmconvert.errors import LoadError
from tmconvert.frontends.megengine.pickle.budget import DAMAGED, MAX_DEPTH, OVER_LIMIT, Budget, kind, text_key
from tmconvert.frontends.megengine.pickle.stand_ins import GlobalRef, Instance

DICTS = ("dict", "OrderedDict", "defaultdict", "QParams", "LSQParams")


def unflatten(definition: object, leaf: Callable[[Instance], Any], budget: Budget, depth: int = 0) -> Any:
    """The tree that a TreeDef describes; ``leaf`` gives the value for each LeafDef, in order.

    QParams become dicts; a container class of the user's becomes a tuple of its parts.
    """
    budget.spend(1)
    if depth > MAX_DEPTH:
        raise LoadError(OVER_LIMIT, f"arguments are nested more than {MAX_DEPTH} deep")
    if not isinstance(definition, Instance):
        raise LoadError(DAMAGED, f"{kind(definition)} is not a valid argument structure")
    if definition.short_name == "LeafDef":
        return leaf(definition)
    fields: dict[str, Any] = definition.state
    children = [unflatten(child, leaf, budget, depth + 1) for child in fields["children_defs"]]
    reference = fields["type"]
    name = reference.name.rpartition(".")[2] if isinstance(reference, GlobalRef) else ""
    if name in DICTS:
        keys = [text_key(key) for key in fields["aux_data"]]
        return dict(zip(keys, children, strict=True))
    if name == "list":
        return children
    if name == "slice":
        return slice(*children)
    return tuple(children)


def unflatten_values(definition: object, values: Sequence[object], budget: Budget) -> Any:
    """The tree of a TreeDef with ``values`` as its leaves, all of them used."""
    remaining = list(reversed(values))

    def leaf(_: Instance) -> Any:
        if not remaining:
            raise LoadError(DAMAGED, "a call has fewer arguments than its structure")
        return remaining.pop()

    tree = unflatten(definition, leaf, budget)
    if remaining:
        raise LoadError(DAMAGED, "a call has more arguments than its structure")
    return tree


def merged(nodes: Sequence[object], constants: Sequence[tuple[int, object]]) -> list[Any]:
    """Returns nodes in order, with each constant inserted at its position."""
    waiting = list(reversed(nodes))
    result: list[Any] = []
    for position, value in constants:
        if not isinstance(position, int) or not len(result) <= position <= len(result) + len(waiting):
            raise LoadError(DAMAGED, "the positions of constant arguments are out of order")
        while len(result) < position:
            result.append(waiting.pop())
        result.append(value)
    return result + waiting[::-1]
