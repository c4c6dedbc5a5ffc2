"""Runs a module on both sides of each of its decisions on data, and joins the recordings to one."""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

import torch

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.control_flow.data_loops import DataLoop
from tmconvert.frontends.torch.tracing.control_flow.joining import CannotJoin, join, name_subgraphs
from tmconvert.frontends.torch.tracing.data.integers import reads_data
from tmconvert.frontends.torch.tracing.data.perturbed_inputs import TURNING
from tmconvert.frontends.torch.tracing.loops.copies import Differs
from tmconvert.frontends.torch.tracing.module_run import ModuleRun
from tmconvert.frontends.torch.tracing.recording.source_lines import is_users
from tmconvert.frontends.torch.tracing.recording.tape import Forced, Record, Side

MOST_RUNS = 16
MOST_DECISIONS = 8  # one after the other
MOST_DECIDED, MOST_FREELY = 1100, 200  # in one run, with given answers and on other data
Inputs = Mapping[str, torch.Tensor]
# runs the module on inputs that take the place of the example's, with answers for its first decisions
Run = Callable[[Inputs, Forced], ModuleRun]


class BothSides:
    """Explores the decisions of a module that ``run`` runs on ``inputs``.

    At sizes other than the example's, other data is drawn only where the module fails without. ``endless``
    are the places of loops that are known to end on data alone.
    """

    def __init__(self, run: Run, inputs: Inputs, endless: set[str], *, is_example: bool) -> None:
        self._run, self._is_example, self._endless = run, is_example, endless
        self._reasons: dict[str, str] = {}  # why loops cannot be written
        self._loops: list[tuple[list[Record], Forced, str]] = []  # that are explored
        self._own: set[Record] = set()  # their decisions
        self._found: list[ModuleRun] = []  # runs on other data
        self._untried = _variations(inputs)
        self._met: Counter[str] = Counter()
        self._runs = 1

    def joined(self, run: ModuleRun) -> ModuleRun:
        """Joins the other sides of all decisions to the recording of a run."""
        self._join(run, 0)
        name_subgraphs(run.tape.top)
        return run

    def _join(self, run: ModuleRun, index: int) -> None:
        """Joins the other sides of the decisions from the one of this index on."""
        if len(run.tape.decided) <= index:
            return
        decision = run.tape.decided[index]
        if self._is_own(run, index):
            self._own.add(decision)
            self._join(run, index + 1)
            return
        if _count(run, index, decision) > 1 and self._rolled(run, index, decision.args[1]):
            return
        self._met[str(decision.source)] += 1
        if (not self._loops and index == MOST_DECISIONS) or self._runs >= MOST_RUNS * (
            8 if self._loops else 1
        ):
            raise _refused(decision, self._too_many())
        other = self._side(run, index)
        if _count(other, index, decision) > 1 and self._rolled(run, index, not decision.args[1]):
            return
        self._join(run, index + 1)
        decision = run.tape.decided[index]
        if other is None:
            run.tape.checks.setdefault(str(decision.source))
            _drop(run.tape.top.items, decision)
        else:
            self._join(other, index + 1)
            try:
                join(run.tape, decision, other.tape, other.tape.decided[index])
            except CannotJoin as reason:
                raise _refused(decision, str(reason)) from None
            merge(run, other)
        self._forget(run, index)

    def _is_own(self, run: ModuleRun, index: int) -> bool:
        """Whether the decision of this index is the one of the loop that is explored."""
        if not self._loops:
            return False
        before, forced, place = self._loops[-1]
        decided = sum(str(each.source) == place for each in run.tape.decided[len(before) : index])
        return str(run.tape.decided[index].source) == place and decided <= forced.loops[place][1]

    def _forget(self, run: ModuleRun, index: int) -> None:
        """Takes the decisions that are joined from the list, but not those of loops that are explored."""
        run.tape.decided[index:] = [each for each in run.tape.decided[index:] if each in self._own]

    def _rolled(self, run: ModuleRun, index: int, go: bool) -> bool:
        """Makes a loop that decides from the decision of this index on a call; False where there is none."""
        decision, forced = run.tape.decided[index], self._given(run, index)
        place = str(decision.source)
        try:
            loop = DataLoop(lambda forced: self._run({}, forced), forced, place, go, self._endless)
            found = loop.join(self._explore)
        except Differs as reason:
            self._reasons.setdefault(place, str(reason))
            return False
        found.tape.has_data_loops = True
        run.recorder, run.top, run.sides = found.recorder, found.top, run.sides + found.sides
        self._forget(run, index)
        return True

    def _explore(self, run: ModuleRun, forced: Forced, place: str) -> None:
        """Joins the other sides of the decisions in a loop and after it; ``place`` is that of its own."""
        self._loops.append((run.tape.decided[: len(forced.first)], forced, place))
        self._join(run, len(forced.first))
        self._loops.pop()

    def _given(self, run: ModuleRun, index: int) -> Forced:
        """Returns the answers of a run before the decision of this index, and of the loops around it."""
        answers = tuple(each.args[1] for each in run.tape.decided[:index])
        if not self._loops:
            return Forced(answers, most=MOST_DECIDED)
        before, forced, _ = self._loops[-1]
        decided = Counter(str(each.source) for each in run.tape.decided[len(before) : index])
        loops = {place: (go, rounds - decided[place]) for place, (go, rounds) in forced.loops.items()}
        return forced._replace(first=answers, loops=loops)

    def _side(self, run: ModuleRun, index: int) -> ModuleRun | None:
        """Returns a run with the other answer to a decision, on data that has it if possible; None for a
        check of inputs, where the module raises an error.
        """
        self._runs += 1
        decision, given = run.tape.decided[index], self._given(run, index)
        answer = not decision.args[1]
        given = given._replace(first=(*given.first, answer))
        found = next(self._on_other_data(given), None) if self._is_example else None
        if found is None:
            found = self._forced(given, decision)
        if found is not None:
            place = str(decision.source)
            natural = [found] if found in self._found else self._found if self._loops else []
            inputs = (each.inputs for each in natural if (place, answer) in _answers(each))
            found.sides.append(Side(place, answer, next(inputs, None)))
        return found

    def _forced(self, given: Forced, decision: Record) -> ModuleRun | None:
        """Returns a run on the example's data, but with these answers."""
        try:
            found = self._run({}, given)
        except TmconvertError:
            raise
        except (Exception, SystemExit) as error:
            natural = next(self._on_other_data(given), None)
            if natural is not None:
                return natural
            if _is_raised_by_user(error.__traceback__):
                return None
            what = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            reason = f"its other side fails on all data that was tried ({what})"
            if str(decision.source) in self._reasons:
                reason = f"its loop cannot be one of the file: {self._reasons[str(decision.source)]}"
            raise _refused(decision, reason) from error
        if len(found.tape.decided) < len(given.first):
            raise _refused(decision, "the module does not ask the same in each run")
        return found

    def _on_other_data(self, given: Forced) -> Iterator[ModuleRun]:
        """Yields the first run on other data that has these answers, if any; none in a loop."""
        count = len(given.first)

        def has(run: ModuleRun) -> bool:
            return not given.loops and tuple(each.args[1] for each in run.tape.decided[:count]) == given.first

        yield from filter(has, self._found)
        for others in self._untried:
            try:
                self._found.append(self._run(others, Forced(most=MOST_FREELY)))
            except (Exception, SystemExit):  # data that the module does not take
                continue
            if has(self._found[-1]):
                yield self._found[-1]

    def _too_many(self) -> str:
        place, count = self._met.most_common(1)[0]
        most = f"{MOST_RUNS} runs and {MOST_DECISIONS} decisions one after the other"
        shown = f"both sides of all decisions are more than {most}; most are at {place} ({count})"
        reason = self._reasons.get(place)
        return f"{shown}, which cannot be a loop of the file: {reason}" if reason else shown


def _answers(run: ModuleRun) -> set[tuple[str, bool]]:
    return {(str(each.source), each.args[1]) for each in run.tape.decided}


def _count(run: ModuleRun | None, index: int, decision: Record) -> int:
    """Returns how often a run decides at the place of a decision, from this index on."""
    decided = () if run is None else run.tape.decided[index:]
    return sum(str(each.source) == str(decision.source) for each in decided)


def _refused(decision: Record, reason: str) -> TmconvertError:
    return reads_data(decision.source, "Python branches on it", reason)


def _variations(inputs: Inputs) -> Iterator[Inputs]:
    """Yields other data: all inputs changed, then one after the other."""
    for change in TURNING:
        yield {name: change(tensor) for name, tensor in inputs.items()}
    for name, tensor in inputs.items() if len(inputs) > 1 else ():
        yield from ({name: change(tensor)} for change in TURNING)


def _drop(items: list[Any], decision: Record) -> None:
    for item in items:
        if item is not decision and not isinstance(item, Record):
            _drop(item.items, decision)
    items[:] = [item for item in items if item is not decision]


def merge(run: ModuleRun, other: ModuleRun) -> None:
    """Adds what another run found to a run whose recording has the calls of both."""
    tape, found = run.tape, other.tape
    for note in found.notes:
        tape.note(note)
    run.sides += other.sides
    tape.has_data_loops |= found.has_data_loops
    tape.with_floats = tape.with_floats or found.with_floats
    tape.checks |= found.checks
    tape.texts |= found.texts
    tape.data_texts |= found.data_texts
    run.recorder.written |= other.recorder.written
    run.recorder.guard.changed |= other.recorder.guard.changed
    run.recorder.origins.unknown += other.recorder.origins.unknown
    run.recorder.has_open_sizes |= other.recorder.has_open_sizes


def _is_raised_by_user(traceback: TracebackType | None) -> bool:
    """Whether an exception comes from a statement ``raise`` or ``assert`` of the user's code."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    code = traceback.tb_frame.f_code
    is_own = is_users(code.co_filename, code.co_name, traceback.tb_frame.f_globals)
    return is_own and code.co_code[traceback.tb_lasti] in _RAISES


_RAISES = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in dis.opmap}
