"""Captured inputs and escaping outputs of a module call.

A module may read a tensor that is not an argument, and store one that it does not return, in an attribute, a
list or a closure. Its graph gets additional inputs and outputs for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import leaves


@dataclass
class Edges:
    """The captured and escaping Values of a call, in the order of their first use."""

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)


def edges_of(top: Scope) -> dict[Scope, Edges]:
    """Returns the Edges of each module call."""
    edges: dict[Scope, Edges] = defaultdict(Edges)
    known: set[tuple[Scope, Value, bool]] = set()

    def add(scope: Scope, value: Value, is_input: bool) -> None:
        if (scope, value, is_input) not in known:
            known.add((scope, value, is_input))
            (edges[scope].inputs if is_input else edges[scope].outputs).append(value)

    given = {scope: set(scope.arguments()) for scope in top.nested()}
    returned = {scope: set(leaves(scope.result)) for scope in given}
    for scope, value in _uses(top):
        if value.captured is not None:
            continue
        around = set(value.scope.ancestors())
        for user in scope.ancestors():
            if user in around or value in given[user]:
                break
            add(user, value, True)
        else:
            user = top
        if value in given[user]:
            continue  # what is formal here was used by the caller
        inside = set(scope.ancestors())
        for maker in value.scope.ancestors():
            if maker in inside:
                break
            if value not in returned[maker]:
                add(maker, value, False)
    return defaultdict(Edges, edges)


def _uses(scope: Scope) -> Iterator[tuple[Scope, Value]]:
    """Yields every (module call, Value that it uses)."""
    for item in scope.items:
        if isinstance(item, Record):
            yield from ((scope, value) for value in item.values())
            for body in item.subgraphs:
                yield from _uses(body)
        else:
            yield from ((scope, value) for value in item.arguments())
            yield from _uses(item)
    yield from ((scope, leaf) for leaf in leaves(scope.result) if isinstance(leaf, Value))
