"""Loops that end on data: ``while err > tol: ...``, ``for ...: if (token == end).all(): break``.

Python decides at the same place in each round. The module runs with a few rounds, with one more, with none,
and with as many as it does. The rounds become one call of ``torch.while_loop``; then all recordings must be
equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.control_flow.alignment import (
    Correspondence,
    Pair,
    inputs_of,
    match,
    match_trees,
)
from tmconvert.frontends.torch.tracing.control_flow.decisions import Endless
from tmconvert.frontends.torch.tracing.control_flow.joining import chain
from tmconvert.frontends.torch.tracing.loops.after import JOINS, uses_after
from tmconvert.frontends.torch.tracing.loops.copies import Differs, matched, steps_of
from tmconvert.frontends.torch.tracing.loops.data_rounds import Rounds
from tmconvert.frontends.torch.tracing.loops.growth import join_growth
from tmconvert.frontends.torch.tracing.loops.tidy import numbers_of_sizes, own_name, tidy
from tmconvert.frontends.torch.tracing.module_run import ModuleRun
from tmconvert.frontends.torch.tracing.recording.tape import Forced, Record, Scope, Value

ROUNDS = 3
MOST_ROUNDS = 1024
AFTER = "what follows the loop depends on the number of its rounds"
Run = Callable[[Forced], ModuleRun]
# gets a run, the answers that it was given, and the place of the loop
Explore = Callable[[ModuleRun, Forced, str], None]


class _Fails(Differs):
    """The module raises an error with a number of rounds."""


@dataclass
class _Shape:
    """How many items of a round are before its decision, and the most rounds."""

    before: int
    most: int | None


class DataLoop:
    """A loop that decides at a place after the decisions ``forced.first``, and goes on with ``go``."""

    def __init__(self, run: Run, forced: Forced, place: str, go: bool, endless: set[str]) -> None:
        self._run, self._forced, self._place, self._go = run, forced, place, go
        self._endless = endless  # places of loops that end on data alone

    def join(self, explore: Explore) -> ModuleRun:
        """Returns a run with the loop as one call; ``explore`` joins the other decisions of a run.

        Raises Differs.
        """
        found = self._recorded(ROUNDS)
        others = dict(self._forced.others)
        for each in found.tape.decided[len(self._forced.first) :]:
            others[str(each.source)] = each.args[1]  # the last one ends a loop
        del others[self._place]
        first: Differs | None = None
        self._forced = self._forced._replace(others=others)
        for shape in self._shapes(found if not others else self._recorded(ROUNDS)):
            try:
                return self._joined(shape, explore if len(found.tape.decided) > self._own() else None)
            except Differs as differs:
                first = first or differs
        raise first or Differs("it has too few rounds", None)

    def _own(self) -> int:
        return len(self._forced.first) + ROUNDS + 1

    def _found(self, run: ModuleRun) -> _Found:
        return _Found(run, len(self._forced.first), self._place, self._go)

    def _rolled(self, run: ModuleRun, shape: _Shape, like: Rounds | None = None) -> _Rolled:
        return _Rolled(self._found(run), shape, like)

    def _joined(self, shape: _Shape, explore: Explore | None) -> ModuleRun:
        found = self._rolled(self._recorded(ROUNDS), shape)
        zero = self._without_rounds(shape)
        if zero is not None:
            found.take_initial(zero)
        found.finish()
        others = [self._rolled(self._recorded(ROUNDS + 1), shape)]
        if shape.most is not None:
            others.append(self._rolled(self._recorded(MOST_ROUNDS), shape, found.step))
        for other in others:
            if zero is not None:
                other.take_initial(zero)
            other.finish()
            _compare(found.run, other.run)
        if explore is None:
            return found.run
        again = self._recorded(ROUNDS)
        explore(again, self._forced._replace(loops=self._loops(ROUNDS)), self._place)
        rolled = self._rolled(again, shape)
        rolled.take_slots(found)
        rolled.finish()
        return again

    def _recorded(self, rounds: int) -> ModuleRun:
        try:
            return self._run(self._forced._replace(loops=self._loops(rounds)))
        except (TmconvertError, Endless):
            raise
        except (Exception, SystemExit) as error:  # the module's own
            what = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            raise _Fails(f"the module fails in {rounds} rounds ({what})", None) from error

    def _loops(self, rounds: int) -> dict[str, tuple[bool, int]]:
        return {**self._forced.loops, self._place: (self._go, rounds)}

    def _shapes(self, found: ModuleRun) -> list[_Shape]:
        """Returns what the loop may be."""
        own = self._found(found)
        if len(own.places) < ROUNDS + 1 or len({b - a for a, b in own.pairs()}) > 1:
            raise Differs("its rounds differ", own.source)
        if self._place in self._endless:
            return [_Shape(0, None)]
        try:
            longest = self._found(self._recorded(MOST_ROUNDS))
        except Endless:
            self._endless.add(self._place)
            return [_Shape(0, None)]
        most, period = len(longest.places), own.places[1] - own.places[0]
        if most >= MOST_ROUNDS:
            return [_Shape(0, None)]
        after = longest.rest() - own.rest()
        if not 0 <= after < period:
            raise Differs(AFTER, own.source)
        shapes = [_Shape(period - 1 - after, most)]
        return shapes if after else [_Shape(0, most - 1), *shapes]

    def _without_rounds(self, shape: _Shape) -> _Zero | None:
        try:
            return _Zero(self._found(self._recorded(0)), shape)
        except _Fails:  # it needs a round
            return None


class _Found:
    """The decisions of a loop among the items of their scope, in a run."""

    def __init__(self, run: ModuleRun, index: int, place: str, go: bool) -> None:
        self.run, self.top, self.go = run, run.top, go
        join_growth(self.top)
        tidy(self.top, (), ())
        decisions = [each for each in run.tape.decided[index:] if str(each.source) == place]
        self.source = decisions[0].source if decisions else None
        # a later loop of the same lines decides after this one has stopped
        ends = next((i for i, each in enumerate(decisions) if each.args[1] != go), None)
        self.stops = ends is not None
        decisions = decisions[: None if ends is None else ends + 1]
        chains = [chain(self.top, each) for each in decisions]
        if not chains or not all(chains) or len({each[-1].scope for each in chains}) > 1:
            raise Differs("it decides in different modules", self.source)
        self.scope: Scope = chains[0][-1].scope
        self.places = [each[-1].at for each in chains]

    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.places, self.places[1:], strict=False))

    def rest(self) -> int:
        """Returns how many items follow the last decision."""
        return len(self.scope.items) - self.places[-1] - 1


class _Zero:
    """A run without rounds; its decision, and what is before it in a round, are taken out."""

    def __init__(self, found: _Found, shape: _Shape) -> None:
        self.top, items, end = found.top, found.scope.items, found.places[0]
        taken = items[end - shape.before : end]
        items[end - shape.before : end + 1] = []
        self.made: dict[Value, int] = {}
        for position, leaf in enumerate(
            leaf for item in taken for step in steps_of(item) for leaf in step.made
        ):
            if isinstance(leaf, Value):
                self.made[leaf] = position


class _Rolled:
    """A run whose rounds are taken out, with the call that takes their place."""

    def __init__(self, found: _Found, shape: _Shape, like: Rounds | None = None) -> None:
        self.run, self.top, self.scope, self.source = found.run, found.top, found.scope, found.source
        items, before = self.scope.items, shape.before
        period = found.places[1] - found.places[0]
        self.start = found.places[0] - before
        is_last_used = before and not found.stops
        count = len(found.places) - (0 if is_last_used else 1)
        end = self.start + count * period if is_last_used else found.places[-1] + 1
        if self.start < 0 or end > len(items):
            raise Differs("its rounds differ", self.source)
        steps = [[*steps_of(item)] for item in items[: self.start + count * period]]
        copies = matched(steps, self.start, period, count, numbers_of_sizes(self.top))
        rests = bool(before) and found.stops
        copies.count += rests
        taken = items[self.start : end]
        self.step = Rounds(
            self.scope, copies, taken, before=before, go=found.go, most=shape.most, rests=rests, like=like
        )
        made = self.step.places(taken)
        items[self.start : end] = []
        uses_after(self.top, self.step, made)

    def finish(self) -> None:
        """Puts the call in the place of the rounds."""
        self.scope.items[self.start : self.start] = self.step.call()
        self.run.tape.decided[:] = [each for each in self.run.tape.decided if chain(self.top, each)]

    def take_initial(self, zero: _Zero) -> None:
        """Takes what follows the loop in a run without rounds as what slots have before it."""
        slots = {slot.final: slot for slot in self.step.used_slots()}
        positions = {slot.final: position for position, slot in self.step.outputs.items()}
        known = inputs_of(self.top, zero.top)

        def check(pair: Pair) -> None:
            one, two = pair
            slot = slots.get(one)
            if slot is None:
                if not known.has(one, two):
                    raise Differs(AFTER, self.source)
                return
            if two in zero.made:
                if zero.made[two] != positions.get(one):
                    raise Differs(AFTER, self.source)
                return
            initial = known.first_of.get(two, two if two.captured is not None else None)
            if initial is None or slot.initial not in (None, initial):
                raise Differs(AFTER, self.source)
            if (initial.shape, initial.dtype) != (slot.inside.shape, slot.inside.dtype):
                raise Differs("what it starts with has another type than what the rounds give", self.source)
            slot.initial = initial

        _walk(self.top, zero.top, known, check, self.step)

    def take_slots(self, other: _Rolled) -> None:
        """Takes what slots have before the loop from another recording of the same calls."""
        known = inputs_of(self.top, other.top)
        for one, two in zip(self.scope.items[: self.start], other.scope.items[: self.start], strict=True):
            found = match(one, two)
            known.add(found.made if found else ())
        for mine, theirs in ((self.step.outputs, other.step.outputs), (self.step.kept, other.step.kept)):
            for position, slot in mine.items():
                given = theirs.get(position)
                if given is None or given.initial is None:
                    continue
                slot.initial = known.first_of.get(given.initial, given.initial)


def _compare(one: ModuleRun, two: ModuleRun) -> None:
    """Raises Differs where two recordings are not equal."""
    known = inputs_of(one.top, two.top)

    def check(pair: Pair) -> None:
        if not known.has(*pair):
            raise Differs(AFTER, None)

    _walk(one.top, two.top, known, check)


def _walk(
    one: Scope,
    two: Scope,
    known: Correspondence,
    check: Callable[[Pair], None],
    step: Rounds | None = None,
) -> None:
    """Checks all pairs that equal items, and the results of two scopes, use.

    Where the results of the rounds of ``step`` are joined, fewer are in the second scope.
    """
    items = [each for each in one.items if step is None or each not in step.emitted]
    if len(items) != len(two.items):
        raise Differs(AFTER, one.source)
    for mine, theirs in zip(items, two.items, strict=True):
        if isinstance(mine, Scope) and isinstance(theirs, Scope) and mine.path == theirs.path:
            for pair in match_trees((mine.args, mine.kwargs), (theirs.args, theirs.kwargs)) or ():
                check(pair)
            _walk(mine, theirs, known, check, step)
            continue
        if step is not None and mine in step.joins and isinstance(theirs, Record):
            known.add(match_trees(mine.result, theirs.result) or ())
            if own_name(theirs) not in JOINS:
                raise Differs(AFTER, theirs.source)
            continue
        found = match(mine, theirs)
        if found is None:
            raise Differs(AFTER, mine.source)
        for pair in found.used:
            check(pair)
        known.add(found.made)
    pairs = match_trees(one.result, two.result)
    if pairs is None:
        raise Differs(AFTER, one.source)
    for pair in pairs:
        check(pair)
