"""Joins two recordings that differ by the answer of one decision: to one, with a call of ``torch.cond``.

What both have before the decision stays, as does the longest tail that both have after it. What lies between
are the subgraphs, and their results are what the tail uses of them. Where the decision is inside of a module
call and the tail begins after it, the call is split: a second call of the module has what followed in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tmconvert.frontends.torch.names import aten_name
from tmconvert.frontends.torch.tracing.control_flow.alignment import (
    Correspondence,
    Demands,
    Item,
    Pair,
    Tail,
    as_constants,
    common_prefix,
    fit,
    fit_in_rank,
    inputs_of,
    match_trees,
    tails,
)
from tmconvert.frontends.torch.tracing.control_flow.decisions import DECISION
from tmconvert.frontends.torch.tracing.loops.tidy import is_assumption, is_of_sizes, replace
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Tape, Value
from tmconvert.ir.tree import Tree, leaves, map_leaves

_CHEAP = (
    "abs add clamp clamp_max clamp_min eq ge gt le lt masked_fill maximum minimum mul ne neg relu sub where"
)
CHEAP = frozenset(_CHEAP.split())
MOST_CHEAP = 4  # calls of a side
LABELS = ("if_true", "if_false")  # of subgraphs


class CannotJoin(Exception):
    """Two recordings cannot be one; the message is the reason."""


class Step(NamedTuple):
    """A scope, and the index of its item that has the decision."""

    scope: Scope
    at: int

    def rest(self) -> list[Item]:
        return self.scope.items[self.at + 1 :]


@dataclass
class Meeting:
    """The place where two recordings are equal again: the scopes that lead to the decision in each, the
    Values that correspond before it, the number of the scope in these chains, and the tail.
    """

    chains: tuple[list[Step], list[Step]]
    known: Correspondence
    level: int
    tail: Tail

    def decisions(self) -> int:
        """Returns how many decisions are after the place."""
        outer = [item for step in self.chains[0][: self.level] for item in step.rest()]
        rest = self.chains[0][self.level].rest()
        return sum(map(_decisions, [*outer, *rest[len(rest) - self.tail.length :]]))


def _decisions(item: Item) -> int:
    return sum(each.name == DECISION for each in ([item] if isinstance(item, Record) else item.records()))


def meeting(one: Scope, decision: Record, two: Scope, opposite: Record) -> Meeting:
    """Returns where two recordings are equal again after a decision. Raises CannotJoin."""
    chains = chain(one, decision), chain(two, opposite)
    if not all(chains):
        raise CannotJoin("it is in a side of another decision")
    known = _before(*chains, (decision.args[0], opposite.args[0]))
    return _meeting(chains, known, fit_in_rank if len(decision.args) > 2 else fit)


def join(tape: Tape, decision: Record, other: Tape, opposite: Record, *, marks: bool) -> dict[Value, Value]:
    """Puts what ``other`` does otherwise into ``tape``. Raises CannotJoin.

    Returns the results of both sides, by the Values of ``tape`` that they are in the place of. With ``marks``
    the decision stays before the branch.
    """
    found = meeting(tape.top, decision, other.top, opposite)
    lengths = found.tail.length, found.tail.length
    writer = _Writer(found.chains, found, lengths, found.tail.joins, marks)
    writer.write(decision, writer.replace_pairs)
    ones = Counter(one for one, _ in writer.joined)
    return {one: value for (one, _), value in writer.joined.items() if ones[one] == 1}


def graft(
    tape: Tape, decision: Record, found: Meeting, length: int, pairs: Mapping[Value, Pair]
) -> dict[Value, Value]:
    """Puts what another recording does otherwise into ``tape``, whose tail of ``length`` items stays.

    ``found`` is where they met before decisions were joined; ``pairs`` are the results of both sides now, by
    those of the first then. Returns the results of the branch by these. Raises CannotJoin.
    """
    fits = fit_in_rank if len(decision.args) > 2 else fit
    if not all(fits(*pair) for pair in pairs.values()):
        raise CannotJoin("the sides return different types")
    chains = chain(tape.top, decision), found.chains[1]
    lengths = length, found.tail.length
    writer = _Writer(chains, found, lengths, list(pairs.values()), marks=True)
    writer.write(decision, writer.replace_values)
    return {one: writer.joined[pair] for one, pair in pairs.items()}


def chain(top: Scope, decision: Record) -> list[Step]:
    """Returns the scopes from the top to the one that has the decision."""
    for index, item in enumerate(top.items):
        if item is decision:
            return [Step(top, index)]
        if isinstance(item, Scope) and (inner := chain(item, decision)):
            return [Step(top, index), *inner]
    return []


def _before(ones: Sequence[Step], twos: Sequence[Step], conditions: Pair) -> Correspondence:
    """Returns which Values correspond before the decision. Raises CannotJoin where the calls differ."""
    known = inputs_of(ones[0].scope, twos[0].scope)
    for number, (one, two) in enumerate(zip(ones, twos, strict=False)):
        prefixes = one.scope.items[: one.at], two.scope.items[: two.at]
        arguments = [(step.scope.path, step.scope.args, step.scope.kwargs) for step in (one, two)]
        used = match_trees(*arguments)
        is_same = used is not None and (not number or all(known.has(*pair) for pair in used))
        if not is_same or common_prefix(*prefixes, known) < max(map(len, prefixes)):
            break
    else:
        if len(ones) == len(twos) and known.has(*conditions):
            return known
    raise CannotJoin("what the module computes before it is not the same in each run")


def _meeting(
    chains: tuple[list[Step], list[Step]], known: Correspondence, fit: Callable[[Value, Value], bool]
) -> Meeting:
    """Returns the first place after which two recordings are equal. Raises CannotJoin if there is none."""
    ones, twos = chains
    pairs = match_trees(ones[0].scope.result, twos[0].scope.result)
    if pairs is None:
        raise CannotJoin("the module returns another structure on each side")
    demands = Demands(known, pairs)
    best: Meeting | None = None
    refused = next((pair for pair in demands.joins() if not fit(*pair)), None)
    for level, (one, two) in enumerate(zip(ones, twos, strict=True)):
        if level:
            pairs = match_trees(one.scope.result, two.scope.result)
            if pairs is None:
                break
            demands.add(pairs)
        rests, reached = (one.rest(), two.rest()), 0
        for tail in tails(*rests, demands):
            reached = tail.length
            if all(fit(*pair) for pair in tail.joins):
                best = Meeting(chains, known, level, tail)
        if {reached} != set(map(len, rests)):
            break
    if best is None:
        shown = " and ".join(map(_type, refused or ()))
        raise CannotJoin(f"the sides return different types: {shown}" if shown else "the sides never meet")
    return best


def _type(value: Value) -> str:
    size = "of a data-dependent size" if value.is_open else list(value.shape or ())
    return "a number" if value.dtype is None else f"{value.dtype} {size}"


class _Writer:
    """Writes a join into the first of two recordings."""

    def __init__(
        self,
        chains: tuple[list[Step], list[Step]],
        found: Meeting,
        lengths: tuple[int, int],
        pairs: Sequence[Pair],
        marks: bool,
    ) -> None:
        self.chains, self.known, self.level, self.marks = chains, found.known, found.level, marks
        self.scope = chains[0][found.level].scope
        self.rests = [each[found.level].rest() for each in chains]
        self.counts = [len(rest) - length for rest, length in zip(self.rests, lengths, strict=True)]
        self.joined = {
            pair: Value(
                self.scope, "cond_out", pair[0].shape, pair[0].dtype, depends=True, qparams=pair[0].qparams
            )
            for pair in pairs
        }

    def write(self, decision: Record, replace: Callable[[], None]) -> None:
        """Puts the branch into the first recording; ``replace`` puts its results into the tail."""
        step, is_inner = self.chains[0][self.level], self.level + 1 < len(self.chains[0])
        sides = [
            self._side(chain[self.level :], rest[:count])
            for chain, rest, count in zip(self.chains, self.rests, self.counts, strict=True)
        ]
        replace()
        call = self._call(decision, sides)
        if self.marks:
            call.insert(0, Record(DECISION, False, (decision.args[0], None), {}, (), decision.source))
        step.scope.items[:] = [
            *step.scope.items[: step.at + is_inner],
            *call,
            *self.rests[0][self.counts[0] :],
        ]

    def replace_pairs(self) -> None:
        """Replaces the Values of the tail that have another partner in that of the second recording."""
        tails = [rest[count:] for rest, count in zip(self.rests, self.counts, strict=True)]
        for level, (one, two) in enumerate(zip(*self.chains, strict=True)):
            if level <= self.level:
                one.scope.result = self._tree(one.scope.result, two.scope.result)
                for pair in zip(*(tails if level == self.level else (one.rest(), two.rest())), strict=True):
                    self._replace(*pair)

    def replace_values(self) -> None:
        """Replaces Values of the tail, wherever it uses them."""
        values = {one: value for (one, _), value in self.joined.items()}
        for level, step in enumerate(self.chains[0][: self.level + 1]):
            step.scope.result = map_leaves(lambda leaf: values.get(leaf, leaf), step.scope.result)
            for item in self.rests[0][self.counts[0] :] if level == self.level else step.rest():
                replace(item, values)

    def _side(self, chain: Sequence[Step], items: list[Item]) -> list[Item]:
        """Returns what one side does, and takes it out of the scopes within the one of the join."""
        if len(chain) == 1:
            return items
        inner, index = chain[1]
        after = Scope(inner.path, inner.class_name, None, source=inner.source)
        after.items = self._side(chain[1:], inner.items[index + 1 :])
        _move(after.items, after)
        inner.items[index + (len(chain) > 2) :] = []
        inner.result = ()
        return [after, *items]

    def _call(self, decision: Record, sides: list[list[Item]]) -> list[Item]:
        """Returns the call of ``torch.cond``; what they ask of sizes where both sides give the same."""
        if not self.joined:
            return [each for each in sides[0] if is_of_sizes(each) or is_assumption(each)]
        results = [tuple(pair[number] for pair in self.joined) for number in (0, 1)]
        labels = LABELS if decision.args[1] else LABELS[::-1]
        subgraphs = []
        for label, items, result in zip(labels, sides, results, strict=True):
            subgraph = Scope("", label, self.scope, (), {}, result, items, decision.source)
            _move(items, subgraph)
            subgraphs.append(subgraph)
        _substitute(subgraphs[1], self.known)
        subgraphs.sort(key=lambda subgraph: LABELS.index(subgraph.class_name))
        args = (decision.args[0], *subgraphs, ())
        made = tuple(self.joined.values())
        if len(decision.args) > 2:
            kwargs = {"choice": decision.args[2]}
            return [
                Record("torch.cond", False, args, kwargs, made, decision.source, subgraphs=tuple(subgraphs))
            ]
        call = Record("torch.cond", False, args, {}, made, decision.source, subgraphs=tuple(subgraphs))
        return [call] if self.marks else selected(call, self.scope)

    def _replace(self, one: Item, two: Item) -> None:
        """Gives a call of the tail the joined Values, in the place of those that differ."""
        one.args, one.kwargs = self._tree((one.args, one.kwargs), (two.args, two.kwargs))
        if isinstance(one, Scope) and isinstance(two, Scope):
            self._replace_inside(one, two)
        elif isinstance(one, Record) and isinstance(two, Record):
            for subgraph, theirs in zip(one.subgraphs, two.subgraphs, strict=True):
                self._replace(subgraph, theirs)

    def _replace_inside(self, one: Scope, two: Scope) -> None:
        one.result = self._tree(one.result, two.result)
        for mine, theirs in zip(one.items, two.items, strict=True):
            self._replace(mine, theirs)

    def _tree(self, one: Tree, two: Tree) -> Tree:
        others = iter(leaves(two))
        return map_leaves(lambda leaf: self._leaf(leaf, next(others)), one)

    def _leaf(self, one: object, two: object) -> Any:
        if type(one) is type(two) in (int, float) and one != two:
            return self.joined.get(as_constants(one, two), one)
        if not isinstance(one, Value) or not isinstance(two, Value):
            return one
        return self.joined.get((one, two), one)


def selected(call: Record, scope: Scope) -> list[Item]:
    """Returns the calls of both sides of a branch, and of ``torch.where`` for each result, if they are cheap.

    Else the branch itself is returned.
    """
    condition, *sides = call.args[:3]
    is_plain = (condition.shape, condition.dtype) == ((), "bool") and "choice" not in call.kwargs
    if not is_plain or not all(map(is_cheap, sides)):
        return [call]
    items = [item for side in sides for item in side.items]
    _move(items, scope)
    for value, *operands in zip(call.results(), *(side.result for side in sides), strict=True):
        arguments = (condition, *operands)
        items.append(Record("torch.where", False, arguments, {}, value, call.source, torch.where))
    return items


def unmark(scope: Scope) -> None:
    """Removes the decisions from a scope, and those branches that cost more than both sides."""
    items: list[Item] = []
    marked: Value | None = None
    for item in scope.items:
        for inner in [item] if isinstance(item, Scope) else item.subgraphs:
            unmark(inner)
        if isinstance(item, Record) and item.name == DECISION:
            marked = item.args[0]
            continue
        is_branch = isinstance(item, Record) and item.name == "torch.cond" and item.args[0] is marked
        items += selected(item, scope) if is_branch else [item]  # type: ignore[arg-type]
        marked = None
    scope.items[:] = items


def is_cheap(subgraph: Scope) -> bool:
    """Whether a side is a few elementwise calls, which cost less than a branch."""
    return len(subgraph.items) <= MOST_CHEAP and all(
        isinstance(item, Record) and aten_name(item.name, item.is_method).strip("_") in CHEAP
        for item in subgraph.items
    )


def _move(items: Sequence[Item], scope: Scope) -> None:
    """Makes items those of another scope."""
    for item in items:
        if isinstance(item, Scope):
            item.parent = scope
            continue
        for value in item.results():
            value.scope = scope
        for subgraph in item.subgraphs:
            subgraph.parent = scope


def name_subgraphs(scope: Scope) -> None:
    """Gives the subgraphs of decisions their paths, in the order of the calls."""
    count = 0
    for item in scope.items:
        for inner in [item] if isinstance(item, Scope) else item.subgraphs:
            if inner.class_name in LABELS:
                name = f"{inner.class_name}@{count}"
                inner.path = f"{scope.path}.{name}" if scope.path else name
                count += 1
            name_subgraphs(inner)


def _substitute(scope: Scope, known: Correspondence) -> None:
    """Puts the Values of the first recording in the place of those that correspond, in a scope and within."""

    def leaf(value: object) -> Any:
        return known.first_of.get(value, value) if isinstance(value, Value) else value

    scope.args, scope.kwargs, scope.result = map_leaves(leaf, (scope.args, scope.kwargs, scope.result))
    for item in scope.items:
        if isinstance(item, Scope):
            _substitute(item, known)
            continue
        item.args, item.kwargs = map_leaves(leaf, (item.args, item.kwargs))
        for subgraph in item.subgraphs:
            _substitute(subgraph, known)
