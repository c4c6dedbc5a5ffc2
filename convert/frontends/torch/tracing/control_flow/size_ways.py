"""Decisions on open sizes: ``if n % 2: ...``, ``if n > 128: ...``, ``if h > w: ...``.

A comparison of sizes whose outcome changes what the module computes is a decision, whose condition is a size
of 0 or 1. Runs at other sizes show its sides with real shapes: a *way* is a run with other answers than those
before. Other runs with the same answers must make the same calls. The ways are joined to calls of
``torch.cond`` with the condition as the keyword ``choice``: what the sides return may differ in its sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.control_flow.both_sides import merge
from tmconvert.frontends.torch.tracing.control_flow.joining import CannotJoin, join, name_subgraphs
from tmconvert.frontends.torch.tracing.module_run import ModuleRun
from tmconvert.frontends.torch.tracing.recording.tape import Record, Tape
from tmconvert.frontends.torch.tracing.runs import Runs, answers_of
from tmconvert.frontends.torch.tracing.sizes import validate_dynamic_shapes
from tmconvert.frontends.torch.tracing.sizes.lost_numbers import depends_on
from tmconvert.ir.tree import leaves

Place = tuple[str, str]  # of a comparison: the line and the operator
Sizes = Mapping[str, int]
MOST_WAYS = 16
MOST_TRIED = 24  # sizes of each symbol


class CannotDecide(Exception):
    """Both sides of the comparisons cannot be in one recording; the message is the reason."""


class FurtherDecisions(CannotDecide):
    """Other comparisons have to be decisions, too."""

    def __init__(self, places: set[Place]) -> None:
        super().__init__("other comparisons decide, too")
        self.places = places


def deciding(checks: Mapping[str, validate_dynamic_shapes.Agreement]) -> set[Place]:
    """Returns the lines and operators of the comparisons that explain other calls at other sizes."""
    guards = {guard for check in checks.values() for guard in check.needed}
    return {(str(guard.source), guard.args[0]) for guard in guards}


def _compared(way: Tape, other: Tape) -> tuple[set[Record], str, Source]:
    """Returns the comparisons with another outcome before the first difference, which is described, and its
    line.
    """
    message, place, end = validate_dynamic_shapes.first_difference(way, other, "at another size")
    return validate_dynamic_shapes.unmatched_guards(way, other, end), message, place


class Ways:
    """The ways of a module through its decisions on sizes, and the sizes that lead there."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.sizes: dict[tuple[bool, ...], Sizes] = {}
        self.counts: dict[tuple[bool, ...], int] = {}
        self.least: dict[str, Source] = {}  # lines that do something else at a size of 1
        self._without_effect: set[Record] = set()
        self._needed: set[Record] = set()

    def join(self) -> None:
        """Joins all ways into the first run. Raises CannotDecide."""
        runs, first = self.runs, self.runs.first
        self._add({}, first)
        for symbol in runs.symbols:
            before = len(self._needed)
            for size in self._candidates(symbol):
                self._try({symbol.name: size})
                if len(self._needed) > before:  # the next recording has more decisions, and tries all sizes
                    break
        if self._needed:
            raise FurtherDecisions({(str(each.source), each.args[0]) for each in self._needed})
        for answers in list(self.sizes):
            self._confirm(answers)
        kept = dict(runs.ways)
        joined = self._joined(first, 0, kept)
        name_subgraphs(joined.tape.top)
        for answers, sizes in self.sizes.items():  # that of the joined ones is changed
            runs.ways[answers] = runs.run(runs.sized(sizes))

    def _add(self, sizes: Sizes, run: ModuleRun) -> None:
        answers = answers_of(run.tape)
        if run.tape.conversions or run.tape.unlike_plain or len(self.sizes) == MOST_WAYS:
            raise CannotDecide("sizes become plain numbers, or there are too many sides")
        if any(depends_on(self.runs, place, run, sizes) for place in run.tape.lost):
            raise CannotDecide("a number that Python computes of a size decides")
        self.runs.ways[answers], self.sizes[answers], self.counts[answers] = run, sizes, 1

    def _candidates(self, symbol: validate_dynamic_shapes.Symbol) -> Iterator[int]:
        """Returns sizes to try: small and large ones, and those around the numbers of the code."""
        first = self.runs.first.tape
        numbers = {
            leaf
            for record in first.top.records()
            for leaf in leaves((record.args, record.kwargs))
            if type(leaf) is int and record.name.startswith(("operator.", "tm."))
        }
        near = [number + step for number in sorted(numbers) for step in (0, 1, -1)]
        found = dict.fromkeys([*symbol.others(), *symbol.neighbours(), 1, validate_dynamic_shapes.FAR])
        found |= dict.fromkeys(near)
        elements = sum(tensor.numel() for tensor in self.runs.inputs.values())
        largest = validate_dynamic_shapes.FAR_ELEMENTS * max(symbol.number, 1) // max(elements, 1)
        chosen = (size for size in found if 0 < size <= max(largest, 2 * symbol.number))
        return itertools.islice((size for size in chosen if size != symbol.number), MOST_TRIED)

    def _try(self, sizes: Sizes) -> None:
        """Runs the module at these sizes: a new way, or the calls of a known one."""
        try:
            found = self.runs.run(self.runs.sized(sizes))
        except (Exception, SystemExit):  # the module's own, at a size that it does not take
            return
        answers = answers_of(found.tape)
        way = self.runs.ways.get(answers)
        if way is None:
            if self._is_consistent(answers, found):
                self._add(sizes, found)
            return
        self._compare(way.tape, found.tape, sizes)
        self.counts[answers] += 1

    def _is_consistent(self, answers: tuple[bool, ...], found: ModuleRun) -> bool:
        """Whether a new way leaves each known one at a decision; else other comparisons decide, too."""
        for known, way in self.runs.ways.items():
            if all(one == two for one, two in zip(known, answers, strict=False)):
                guards, reason, _ = _compared(way.tape, found.tape)
                if not guards:
                    raise CannotDecide(reason)
                self._needed |= guards
                return False
        return True

    def _compare(self, way: Tape, other: Tape, sizes: Sizes) -> None:
        guards, reason, place = _compared(way, other)
        if not reason:
            self._without_effect |= guards
        elif 1 in sizes.values():
            self.least.update({name: place for name, size in sizes.items() if size == 1})
        elif guards:
            self._needed |= guards
        else:
            raise CannotDecide(reason)

    def _confirm(self, answers: tuple[bool, ...]) -> None:
        """Runs a way that was seen once at other sizes near those."""
        sizes = dict(self.sizes[answers])
        for name, size in sizes.items():
            for other in (size + 1, size + 2, size - 1, size - 2, 2 * size):
                if self.counts[answers] > 1:
                    return
                if other > 0:
                    self._try({**sizes, name: other})
        if self.counts[answers] < 2:
            raise CannotDecide("a side is taken at one size alone")

    def _joined(self, run: ModuleRun, index: int, ways: Mapping[tuple[bool, ...], ModuleRun]) -> ModuleRun:
        """Joins the other sides of the decisions of a run from the one of this index on."""
        if len(run.tape.sized) <= index:
            return run
        decision = run.tape.sized[index]
        before = answers_of(run.tape)[:index]
        other = self._side((*before, not decision.args[1]), ways)
        self._joined(run, index + 1, ways)
        if other is None:  # at all sizes that were tried
            _keep_guard(run.tape, decision)
        else:
            opposite = other.tape.sized[index]
            self._joined(other, index + 1, ways)
            validate_dynamic_shapes.without(run.tape, self._without_effect)
            validate_dynamic_shapes.without(other.tape, self._without_effect)
            try:
                join(run.tape, decision, other.tape, opposite)
            except CannotJoin as reason:
                raise CannotDecide(str(reason)) from None
            merge(run, other)
        return run

    def _side(
        self, answers: tuple[bool, ...], ways: Mapping[tuple[bool, ...], ModuleRun]
    ) -> ModuleRun | None:
        """Returns a way that starts with these answers; None if no sizes lead there."""
        found = [run for way, run in ways.items() if way[: len(answers)] == answers]
        return found[0] if found else None


def _keep_guard(tape: Tape, decision: Record) -> None:
    """Makes a decision a guard: the file is valid for sizes with its answer."""
    decision.name, decision.args = "tm.assume", ("eq", decision.args[2], int(decision.args[1]), True)
