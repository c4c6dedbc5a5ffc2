"""Runs a module on both sides of each of its decisions on data, and joins the recordings to one."""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import torch

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.control_flow.joining import CannotJoin, join, name_subgraphs
from tmconvert.frontends.torch.tracing.data.access import reads_data
from tmconvert.frontends.torch.tracing.data.perturbed_inputs import TURNING
from tmconvert.frontends.torch.tracing.module_run import ModuleRun
from tmconvert.frontends.torch.tracing.recording.source_lines import is_users
from tmconvert.frontends.torch.tracing.recording.tape import Record, Side

MOST_RUNS = 16
MOST_DECISIONS = 8  # one after the other
Inputs = Mapping[str, torch.Tensor]
# runs the module on inputs that take the place of the example's, with answers for its first decisions
Run = Callable[[Inputs, Sequence[bool]], ModuleRun]


class BothSides:
    """Explores the decisions of a module that ``run`` runs on ``inputs``.

    At sizes other than the example's, other data is drawn only where the module fails without.
    """

    def __init__(self, run: Run, inputs: Inputs, *, is_example: bool) -> None:
        self._run, self._is_example = run, is_example
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
        self._met[str(decision.source)] += 1
        if index == MOST_DECISIONS or self._runs == MOST_RUNS:
            raise _refused(decision, self._too_many())
        answers = [each.args[1] for each in run.tape.decided[:index]]
        other = self._side([*answers, not decision.args[1]], decision)
        self._join(run, index + 1)
        if other is None:
            run.tape.checks.setdefault(str(decision.source))
            _drop(run.tape.top.items, decision)
        else:
            opposite = other.tape.decided[index]
            self._join(other, index + 1)
            try:
                join(run.tape, decision, other.tape, opposite)
            except CannotJoin as reason:
                raise _refused(decision, str(reason)) from None
            merge(run, other)
        del run.tape.decided[index:]

    def _side(self, answers: list[bool], decision: Record) -> ModuleRun | None:
        """Returns a run with these answers, on data that has them if possible; None for a check of inputs,
        where the module raises an error.
        """
        self._runs += 1
        found = next(self._on_other_data(answers), None) if self._is_example else None
        if found is None:
            found = self._forced(answers, decision)
        is_found = found is not None and found in self._found
        if found is not None:
            side = Side(str(decision.source), answers[-1], found.inputs if is_found else None)
            found.sides.append(side)
        return found

    def _forced(self, answers: list[bool], decision: Record) -> ModuleRun | None:
        """Returns a run on the example's data, but with these answers."""
        try:
            found = self._run({}, answers)
        except TmconvertError:
            raise
        except (Exception, SystemExit) as error:
            natural = next(self._on_other_data(answers), None)
            if natural is not None:
                return natural
            if _is_raised_by_user(error.__traceback__):
                return None
            what = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            reason = f"its other side fails on all data that was tried ({what})"
            raise _refused(decision, reason) from error
        if len(found.tape.decided) < len(answers):
            raise _refused(decision, "the module does not ask the same in each run")
        return found

    def _on_other_data(self, answers: list[bool]) -> Iterator[ModuleRun]:
        """Yields the first run on other data that has these answers, if any."""

        def has(run: ModuleRun) -> bool:
            return [each.args[1] for each in run.tape.decided[: len(answers)]] == answers

        yield from filter(has, self._found)
        for others in self._untried:
            try:
                self._found.append(self._run(others, ()))
            except (Exception, SystemExit):  # data that the module does not take
                continue
            if has(self._found[-1]):
                yield self._found[-1]

    def _too_many(self) -> str:
        place, count = self._met.most_common(1)[0]
        most = f"{MOST_RUNS} runs and {MOST_DECISIONS} decisions one after the other"
        return f"both sides of all decisions are more than {most}; most are at {place} ({count})"


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
