"""Finds consecutive copies of the same items, and how what they use depends on the number of the copy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.loops.progressions import NUMBERS, Progression, progression_of
from tmconvert.frontends.torch.tracing.loops.tidy import Item
from tmconvert.frontends.torch.tracing.recording.tape import Scope, Value
from tmconvert.ir.tree import leaves

LEAST = 3  # copies of a loop
FIRST = 6  # copies that are compared first
PEELED = 2  # copies at the start, and at the end, that may do something else
CANDIDATES = 24


class Counted(NamedTuple):
    """A number that follows the number of the copy."""

    progression: Progression
    like: Any = None  # the constant tensor of one element that has it


class Carried(NamedTuple):
    """The result at a position of the copy ``lag`` copies before; first come ``initial`` Values."""

    position: int
    initial: tuple[Value, ...]


class Inside(NamedTuple):
    """The result at a position of the same copy."""

    position: int


class Same(NamedTuple):
    """The same in all copies."""

    leaf: Any


class Differs(Exception):
    """Why copies are not those of a loop.

    ``place`` is the position of the item, in a copy, whose numbers follow no rule. The copies that start
    later, but not after that item, have the same numbers.
    """

    def __init__(self, reason: str, source: Source | None) -> None:
        super().__init__(reason)
        self.source = source
        self.place = -1


@dataclass
class Copies:
    """``count`` copies of ``period`` items from ``start`` on; ``uses`` is what each leaf of a copy is.

    At the positions that are ``open``, results have other sizes in each copy.
    """

    start: int
    period: int
    count: int
    uses: list[Any] = field(default_factory=list)
    open: frozenset[int] = frozenset()


# ---- the leaves of items


class Step(NamedTuple):
    """A part of an item: what tells it from others, the leaves that it uses, and those that it makes."""

    key: Hashable
    uses: list[Any]
    made: list[Any]
    source: Source | None


def steps_of(item: Item) -> Iterator[Step]:
    """Yields the steps of an item, in the order in which ``building.copied`` visits its leaves."""
    given = (item.args, item.kwargs)
    if isinstance(item, Scope):
        yield Step(
            (item.path, item.class_name, _shape(given), str(item.source)), leaves(given), [], item.source
        )
        yield from _inner(item)
        return
    key = (item.name, item.is_method, _shape(given), _shape(item.result), str(item.source))
    uses = [None if isinstance(leaf, Scope) else leaf for leaf in leaves(given)]
    yield Step(key, uses, leaves(item.result), item.source)
    for body in item.subgraphs:
        yield Step(("body", body.class_name, _shape(body.args)), [], leaves(body.args), item.source)
        yield from _inner(body)


def _inner(scope: Scope) -> Iterator[Step]:
    for item in scope.items:
        yield from steps_of(item)
    yield Step(("end", _shape(scope.result)), leaves(scope.result), [], scope.source)


def _shape(tree: object) -> Hashable:
    """Returns the structure of a tree, without its Values and numbers."""
    if isinstance(tree, (tuple, list)):
        return type(tree).__name__, *map(_shape, tree)
    if isinstance(tree, dict):
        return "dict", *((key, _shape(value)) for key, value in tree.items())
    if isinstance(tree, slice):
        return "slice", _shape(tree.start), _shape(tree.stop), _shape(tree.step)
    if isinstance(tree, Value):
        return "size" if tree.shape is None else "tensor"
    if isinstance(tree, Scope):
        return "scope"
    return type(tree).__name__ if type(tree) in NUMBERS else repr(tree)


# ---- repeated items


def repeats(steps: Sequence[Sequence[Step]]) -> Iterator[tuple[int, int, int]]:
    """Yields start, end and period of runs of equal items, those with most items first."""
    numbers: dict[Hashable, int] = {}
    keys = np.array([numbers.setdefault(tuple(each.key for each in item), len(numbers)) for item in steps])
    found = []
    for period in range(1, len(keys) // LEAST + 1):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], keys[period:] == keys[:-period], [0]))))
        for start, end in edges.reshape(-1, 2).tolist():
            if end - start >= (LEAST - 1) * period:
                found.append((start, end + period, period))
    found.sort(key=lambda run: (run[0] - run[1], run[2]))
    yield from found[:CANDIDATES]


def copies_in(
    steps: Sequence[Sequence[Step]], start: int, end: int, period: int, sizes: Mapping[Value, int]
) -> Copies:
    """Returns the most copies of one run that are those of a loop; ``steps`` are by item. Raises Differs."""
    first: Differs | None = None
    most = (end - start) // period
    rest = (end - start) % period
    for peeled in range(2 * PEELED + 1):
        for front in range(max(peeled - PEELED, 0), min(peeled, PEELED) + 1):
            shift = 0
            while shift <= rest and most - peeled >= LEAST:
                at = start + shift + front * period
                try:
                    matched(steps, at, period, min(most - peeled, FIRST), sizes)
                    return matched(steps, at, period, most - peeled, sizes)
                except Differs as differs:
                    first = first or differs
                    shift += max(differs.place, 0) + 1
    raise first or Differs("it has too few rounds", None)


def matched(
    steps: Sequence[Sequence[Step]], start: int, period: int, count: int, sizes: Mapping[Value, int]
) -> Copies:
    """Returns how the leaves of consecutive copies are related. Raises Differs."""
    copies = [
        [step for item in steps[start + number * period :][:period] for step in item]
        for number in range(count)
    ]
    places: dict[Value, tuple[int, int]] = {}
    for number, copy in enumerate(copies):
        for position, leaf in enumerate(leaf for step in copy for leaf in step.made):
            if isinstance(leaf, Value):
                places.setdefault(leaf, (number, position))
    if any([step.key for step in copy] != [step.key for step in copies[0]] for copy in copies):
        raise Differs("its rounds differ", copies[0][0].source if copies[0] else None)
    found = Copies(start, period, count, open=_open_results(copies))
    for index, column in enumerate(zip(*copies, strict=True)):
        for used in zip(*(step.uses for step in column), strict=True):
            try:
                found.uses.append(_use(used, places, sizes, column[0].source))
            except Differs as differs:
                if not any(isinstance(leaf, Value) for leaf in used):
                    items = (n for n, item in enumerate(steps[start : start + period]) for _ in item)
                    differs.place = next(islice(items, index, None))
                raise
    return found


def _open_results(copies: Sequence[Sequence[Step]]) -> frozenset[int]:
    """Returns the positions of results with other sizes in each copy. Raises Differs for other types."""
    columns = (
        (made, column[0].source)
        for column in zip(*copies, strict=True)
        for made in zip(*(step.made for step in column), strict=True)
    )
    found = set[int]()
    for position, (made, source) in enumerate(columns):
        if len({(_rank(leaf), leaf.dtype) if isinstance(leaf, Value) else repr(leaf) for leaf in made}) > 1:
            raise Differs("a tensor has another type in each round", source)
        if len({leaf.shape for leaf in made if isinstance(leaf, Value)}) > 1:
            found.add(position)
    return frozenset(found)


def _rank(value: Value) -> int | None:
    return None if value.shape is None else len(value.shape)


def _use(
    used: tuple[Any, ...],
    places: Mapping[Value, tuple[int, int]],
    sizes: Mapping[Value, int],
    source: Source | None,
) -> Any:
    """Returns what a leaf of a copy is, from what it is in each."""
    first = used[0]
    if not isinstance(first, Value):
        if all(leaf == first and type(leaf) is type(first) for leaf in used):
            return Same(first)
        return _counted(used, source)
    if all(leaf is first for leaf in used) and first not in places:
        return Same(first)
    if all(leaf.captured is not None for leaf in used):
        return _constant(used, source)
    if first not in places and all(leaf in sizes and leaf not in places for leaf in used):
        return _counted([sizes[leaf] for leaf in used], source)
    last = places.get(used[-1])
    if last is None:
        raise Differs("it takes other tensors from before the loop in each round", source)
    lag, position = len(used) - 1 - last[0], last[1]
    if any(places.get(leaf) != (number, position) for number, leaf in enumerate(used[lag:])):
        raise Differs("it does not take the same result in each round", source)
    if not lag:
        return Inside(position)
    initial = used[:lag]
    kinds = {(leaf.shape, leaf.dtype, leaf.qparams) for leaf in used}
    if len({leaf.shape for leaf in used}) > 1:
        shapes = [list(leaf.shape or ()) for leaf in used][-2:]
        raise Differs(f"a tensor has another shape in each round: {shapes[0]}, {shapes[1]}", source)
    if any(leaf in places for leaf in initial) or len(kinds) > 1 or first.shape is None:
        raise Differs("what it starts with has another type than what the rounds give", source)
    return Carried(position, initial)


def _counted(used: Sequence[Any], source: Source | None) -> Counted:
    if any(type(leaf) not in NUMBERS or type(leaf) is not type(used[0]) for leaf in used):
        raise Differs("it takes other constants in each round", source)
    found = progression_of([*enumerate(used)])
    if found is not None:
        return Counted(found)
    shown = ", ".join(map(str, used[:4]))
    raise Differs(f"a number follows no rule that a file has: {shown}", source)


def _constant(used: Sequence[Value], source: Source | None) -> Any:
    """Returns what constant tensors are: the same, or one element that follows the number of the round."""
    from tmconvert.frontends.torch.tracing.control_flow.alignment import same_constant

    if all(same_constant(used[0], leaf) for leaf in used):
        return Same(used[0])
    kinds = {(leaf.shape, leaf.dtype) for leaf in used}
    if len(kinds) > 1 or math.prod(used[0].shape or ()) != 1:
        raise Differs("it takes other constant tensors in each round", source)
    return _counted([leaf.captured.item() for leaf in used], source)._replace(like=used[0])
