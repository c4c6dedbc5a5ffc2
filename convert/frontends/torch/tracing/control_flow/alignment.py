"""Compares recordings, item by item: which calls are equal, and which Values correspond.

An item of a scope is a Record, or the Scope of a module call. Two items *match* where they call the same
with the same constants; a module call matches with all that is inside. Their operands may be any Values: the
pairs of operands are part of the Match, and whoever compares decides what they mean. ``common_prefix``
requires that operands correspond. ``tails`` walks two lists from their ends, and yields the pairs of
operands that the tails need from what is before.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tmconvert.frontends.torch.tracing.loops.tidy import own_name
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import Tree

Item = Record | Scope
Pair = tuple[Value, Value]
ARITHMETIC = frozenset(
    ["add", "sub", "mul", "div", "true_divide", "truediv", "rsub", "radd", "rmul", "rtruediv", "masked_fill"]
)
_SCALARS = ("float32", "int64")  # types of numbers, and of what is computed of them
_NOWHERE = Scope("", "")


@dataclass
class Match:
    """Two items that do the same: the pairs of operands from outside, and of all results, in order.

    A constant tensor that both use is no pair.
    """

    used: list[Pair] = field(default_factory=list)
    made: list[Pair] = field(default_factory=list)


class Correspondence:
    """Pairs of Values of two recordings that hold the same, one to one."""

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self.second_of: dict[Value, Value] = {}
        self.first_of: dict[Value, Value] = {}
        self.add(pairs)

    def add(self, pairs: Iterable[Pair]) -> None:
        for one, two in pairs:
            self.second_of[one], self.first_of[two] = two, one

    def has(self, one: Value, two: Value) -> bool:
        """Whether the two Values hold the same: they are a pair, or equal constants."""
        return (self.second_of.get(one) is two and self.first_of.get(two) is one) or same_constant(one, two)

    def knows(self, one: Value, two: Value) -> bool:
        """Whether one of the Values is in a pair."""
        return one in self.second_of or two in self.first_of


@dataclass
class Tail:
    """The last ``length`` items of two lists, which match; ``used`` are the pairs that they use, and what
    comes after them, of what is before, and ``joins`` those of different Values.
    """

    length: int
    joins: list[Pair]
    used: list[Pair]


def inputs_of(one: Scope, two: Scope) -> Correspondence:
    """Returns the correspondence of the inputs of two recordings."""
    return Correspondence(match_trees((one.args, one.kwargs), (two.args, two.kwargs)) or ())


class Demands:
    """The pairs of Values that the tails of two recordings use, while both are walked backwards.

    ``known`` corresponds before the tails: of such pairs nothing needs to be joined.
    """

    def __init__(self, known: Correspondence, pairs: Iterable[Pair] = ()) -> None:
        self.known = known
        self._joins: dict[Pair, None] = {}
        self._seconds: dict[Value, set[Value]] = {}
        self._firsts: dict[Value, set[Value]] = {}
        self.add(pairs)

    def add(self, pairs: Iterable[Pair]) -> None:
        for one, two in pairs:
            if not self.known.has(one, two):
                self._joins[one, two] = None
            self._seconds.setdefault(one, set()).add(two)
            self._firsts.setdefault(two, set()).add(one)

    def take(self, match: Match) -> bool:
        """Puts two matching items at the front of the tails; False where a later use contradicts that."""
        for one, two in match.made:
            if not self._seconds.get(one, {two}) <= {two} or not self._firsts.get(two, {one}) <= {one}:
                return False
        for one, two in match.made:
            self._joins.pop((one, two), None)
            self._seconds.pop(one, None)
            self._firsts.pop(two, None)
        self.add(match.used)
        return True

    def joins(self) -> list[Pair]:
        """Returns the pairs of different Values, in the order of the last use."""
        return list(self._joins)

    def used(self) -> list[Pair]:
        """Returns all pairs."""
        return [(one, two) for one, twos in self._seconds.items() for two in twos]


def common_prefix(ones: Sequence[Item], twos: Sequence[Item], known: Correspondence) -> int:
    """Returns how many items are equal from the start, under ``known``; their results are added to it."""
    for count, (one, two) in enumerate(zip(ones, twos, strict=False)):
        found = match(one, two)
        if found is None or not all(known.has(*pair) for pair in found.used):
            return count
        known.add(found.made)
    return min(len(ones), len(twos))


def tails(ones: Sequence[Item], twos: Sequence[Item], demands: Demands) -> Iterator[Tail]:
    """Yields the common tails from the shortest, which is empty, to the longest."""
    yield Tail(0, demands.joins(), demands.used())
    for length, (one, two) in enumerate(zip(reversed(ones), reversed(twos), strict=False), 1):
        found = match(one, two)
        if found is None or not demands.take(found):
            return
        yield Tail(length, demands.joins(), demands.used())


def fit(one: Value, two: Value) -> bool:
    """Whether two Values are tensors of one type, so that a branch can return either.

    A size that depends on the data of one side does not leave it.
    """
    return (
        not (one.is_open or two.is_open)
        and (one.shape, one.dtype, one.qparams) == (two.shape, two.dtype, two.qparams)
        and None
        not in (
            one.shape,
            one.dtype,
        )
    )


def fit_in_rank(one: Value, two: Value) -> bool:
    """Whether two Values are tensors of one type, but for their sizes."""
    ranks = [None if value.shape is None else len(value.shape) for value in (one, two)]
    is_open = one.is_open or two.is_open
    return (
        not is_open
        and ranks[0] == ranks[1] is not None
        and one.dtype == two.dtype is not None
        and one.qparams == two.qparams
    )


# ---- equality of items


def match(one: Item, two: Item) -> Match | None:
    """Compares two items; None where they are different calls."""
    found = Match()
    return found if _Matching(found).items(one, two) else None


def match_trees(one: Tree, two: Tree) -> list[Pair] | None:
    """Returns the pairs of Values of two trees; None where they differ in structure or constants."""
    found = Match()
    return found.used if _Matching(found).trees(one, two, found.used) else None


def same_constant(one: Value, two: Value) -> bool:
    """Whether two Values are constants with equal elements."""
    a, b = one.captured, two.captured
    if a is None or b is None:
        return False
    return a is b or (
        (a.dtype, a.shape, a.layout) == (b.dtype, b.shape, b.layout)
        and not a.is_meta
        and torch.equal(a.detach(), b.detach())
    )


def takes_tensors(call: Record) -> bool:
    """Whether a call takes a tensor of no axes like a number."""
    name = own_name(call).rstrip("_") if call.name != "__getitem__" else ""
    made = call.result.dtype if isinstance(call.result, Value) else None
    return call.name == "__getitem__" or (name.strip("_") in ARITHMETIC and made in _SCALARS)


@functools.cache
def as_constants(one: float, two: float) -> Pair:
    """Returns the tensors that have two numbers, always the same ones."""
    dtype = torch.int64 if type(one) is int else torch.float32
    name = str(dtype).removeprefix("torch.")
    values = (
        Value(_NOWHERE, "const", (), name, captured=torch.tensor(each, dtype=dtype)) for each in (one, two)
    )
    return next(values), next(values)


class _Matching:
    """Adds to ``found`` what is paired while two items are compared."""

    def __init__(self, found: Match) -> None:
        self.found = found
        self.inside = Correspondence()
        self.takes_tensors = False  # in the place of numbers

    def items(self, one: Item, two: Item) -> bool:
        if isinstance(one, Scope):
            return isinstance(two, Scope) and one.path == two.path and self.scopes(one, two)
        if isinstance(two, Scope) or (one.name, one.is_method) != (two.name, two.is_method):
            return False
        self.takes_tensors = takes_tensors(one)
        is_equal = self.operands((one.args, one.kwargs), (two.args, two.kwargs))
        self.takes_tensors = False
        return is_equal and self.results(one, two)

    def scopes(self, one: Scope, two: Scope) -> bool:
        """Compares two calls of a module, or two subgraphs."""
        return (
            one.class_name == two.class_name
            and len(one.items) == len(two.items)
            and self.operands((one.args, one.kwargs), (two.args, two.kwargs))
            and all(map(self.items, one.items, two.items))
            and self.operands(one.result, two.result)
        )

    def results(self, one: Record, two: Record) -> bool:
        made: list[Pair] = []
        if not self.trees(one.result, two.result, made):
            return False
        self.found.made += made
        self.inside.add(made)
        return True

    def operands(self, one: Tree, two: Tree) -> bool:
        used: list[Pair] = []
        if not self.trees(one, two, used):
            return False
        for pair in used:
            if self.inside.knows(*pair):
                if not self.inside.has(*pair):
                    return False
            elif not same_constant(*pair):
                self.found.used.append(pair)
        return True

    def trees(self, one: Tree, two: Tree, pairs: list[Pair]) -> bool:
        if type(one) is not type(two):
            return False
        if isinstance(one, Value):
            pairs.append((one, two))
            return True
        if isinstance(one, Scope):  # whose formal inputs are its own
            formal = match_trees(one.args, two.args) or ()
            self.inside.add(pair for pair in formal if pair[0].scope is one and pair[1].scope is two)
            return self.scopes(one, two)
        if isinstance(one, dict):
            return one.keys() == two.keys() and all(self.trees(one[key], two[key], pairs) for key in one)
        if isinstance(one, (tuple, list)):
            if len(one) != len(two):
                return False
            return all(self.trees(a, b, pairs) for a, b in zip(one, two, strict=True))
        if isinstance(one, slice):
            return self.trees((one.start, one.stop, one.step), (two.start, two.stop, two.step), pairs)
        if self.constants(one, two):
            return True
        if self.takes_tensors and type(one) in (int, float):
            pairs.append(as_constants(one, two))
            return True
        return False

    def constants(self, one: Any, two: Any) -> bool:
        if isinstance(one, float) and math.isnan(one) and math.isnan(two):
            return True
        return bool(one == two) and (type(one) is not float or math.copysign(1, one) == math.copysign(1, two))
