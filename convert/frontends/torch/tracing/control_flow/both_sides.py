"""Runs a module on both sides of each of its decisions on data, and joins the recordings to one."""

from __future__ import annotations

import dis
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType

import torch

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.control_flow.alignment import Pair
from tmconvert.frontends.torch.tracing.control_flow.data_loops import DataLoop
from tmconvert.frontends.torch.tracing.control_flow.decisions import Elsewhere, Endless
from tmconvert.frontends.torch.tracing.control_flow.interactions import Interacts, check, covering, snapshot
from tmconvert.frontends.torch.tracing.control_flow.joining import (
    CannotJoin,
    Meeting,
    chain,
    graft,
    join,
    meeting,
    name_subgraphs,
    unmark,
)
from tmconvert.frontends.torch.tracing.control_flow.size_ways import TriedSizes
from tmconvert.frontends.torch.tracing.data.integers import reads_data
from tmconvert.frontends.torch.tracing.data.perturbed_inputs import TURNING
from tmconvert.frontends.torch.tracing.loops.copies import Differs
from tmconvert.frontends.torch.tracing.module_run import ModuleRun
from tmconvert.frontends.torch.tracing.recording.source_lines import is_users
from tmconvert.frontends.torch.tracing.recording.tape import Forced, Record, Scope, Side, Tape, Value
from tmconvert.frontends.torch.tracing.sizes.differences import difference

MOST_RUNS = 16
MOST_DECISIONS = 8  # one after the other
MOST_ONE_BY_ONE = 160  # runs where the decisions are joined one by one
MOST_TRIED = 320  # runs in all, with those at sizes that lead elsewhere
FEW = 3  # decisions whose sides are all combined
MOST_DECIDED, MOST_FREELY = 1100, 200  # in one run, with given answers and on other data
Inputs = Mapping[str, torch.Tensor]
# runs the module on inputs that take the place of the example's, with answers for its first decisions
Run = Callable[[Inputs, Forced], ModuleRun]
# yields inputs of other sizes than those of a run, with the symbol that is another
Resized = Callable[[ModuleRun], Iterator[tuple[str, Inputs]]]
Joined = dict[Value, Value]  # results of branches, by the Values of a recording that they are in the place of


class BothSides:
    """Explores the decisions of a module that ``run`` runs on ``inputs``, and at the sizes of ``resized``.

    At sizes other than the example's, other data is drawn only where the module fails without. ``endless``
    are the places of loops that are known to end on data alone. ``tried`` is shared by the explorations
    whose runs differ in sizes and data only. ``rolls`` states that loops over sizes are rolled afterwards.

    Each side of a decision is a run of its own, in which later decisions have sides, too. Where there are
    more than a few, decisions that do not depend on each other are joined *one by one*: what follows both
    sides is explored once, and runs with several other answers are compared with what was joined.
    """

    def __init__(
        self,
        run: Run,
        inputs: Inputs,
        endless: set[str],
        *,
        is_example: bool,
        resized: Resized,
        tried: TriedSizes,
        rolls: bool,
    ) -> None:
        self._run_with, self._is_example, self._endless = run, is_example, endless
        self._resized, self._inputs = resized, inputs
        self._tried_sizes, self._rolls = tried, rolls
        self._found: list[ModuleRun] = []  # runs on other data
        self._untried, self._tried = _variations(inputs), 0
        self._start({}, one_by_one=False)

    def _start(self, others: Mapping[str, bool], *, one_by_one: bool) -> None:
        self._one_by_one, self._others = one_by_one, others
        self._reasons: dict[str, str] = {}  # why loops cannot be written
        self._loops: list[tuple[list[Record], Forced, str]] = []  # that are explored
        self._own: set[Record] = set()  # their decisions
        self._met: Counter[str] = Counter()
        self._before: dict[Scope, Scope] = {}  # recordings before they were joined
        self._sizes: list[Inputs] = [{}]  # at which sides were found
        self._runs, self._grafts = 1, 0

    def joined(self, run: ModuleRun) -> ModuleRun:
        """Joins the other sides of all decisions to the recording of a run."""
        is_long = len(run.tape.decided) > FEW
        refusal: Exception | None = None
        for one_by_one in (is_long, not is_long):
            try:
                found = self._joined_one_by_one(run) if one_by_one else self._joined_all(run)
                name_subgraphs(found.tape.top)
                return found
            except (TmconvertError, CannotJoin, Interacts, Endless) as error:
                refusal = error if refusal is None or not one_by_one else refusal
        assert refusal is not None
        raise refusal

    def _joined_all(self, run: ModuleRun) -> ModuleRun:
        self._start({}, one_by_one=False)
        self._join(run, 0, len(run.tape.decided))
        return run

    def _joined_one_by_one(self, run: ModuleRun) -> ModuleRun:
        """Joins to a run in which all decisions at a place have one answer."""
        others: dict[str, bool] = {}
        for decision in run.tape.decided:
            others.setdefault(str(decision.source), decision.args[1])
        self._start(others, one_by_one=True)
        forced = Forced(others=others, most=MOST_DECIDED)
        found = self._run({}, forced)
        count = len(found.tape.decided)
        if self._is_example:
            deque(self._on_untried_data(), 0)  # which leads to their sides
        self._join(found, 0, count)
        if self._grafts and found.tape.has_data_loops:
            raise CannotJoin("loops that end on data follow branches")
        if self._grafts:
            self._check(found, forced, count)
        unmark(found.tape.top)
        found.tape.decided.clear()
        found.outputs = run.outputs
        return found

    def _check(self, run: ModuleRun, forced: Forced, count: int) -> None:
        """Compares runs with several other answers with what was joined. Raises Interacts."""
        for inputs in self._sizes:
            for answers in covering(forced, count):
                try:
                    found = self._run(inputs, answers)
                except (TmconvertError, Endless):
                    raise
                except (Exception, SystemExit):  # data that the module does not take
                    continue
                check(run.tape.top, found.tape)

    def _run(self, inputs: Inputs, forced: Forced) -> ModuleRun:
        self._tried += 1
        found = self._run_with(inputs, forced)
        found.changed = inputs
        return found

    def _join(self, run: ModuleRun, index: int, end: int) -> Joined:
        """Joins the other sides of the decisions from the one of this index on, to the end."""
        if index >= min(end, len(run.tape.decided)):
            return {}
        decision = run.tape.decided[index]
        if self._is_own(run, index):
            self._own.add(decision)
            return self._join(run, index + 1, end)
        count, other = _count(run, index, decision), None
        if self._one_by_one and not self._loops and count > 1:
            other = self._side(run, index)
            if _count(other, index, decision) == count:
                return self._join_one(run, index, end, other)
        if count > 1 and self._rolled(run, index, decision.args[1]):
            return {}
        self._met[str(decision.source)] += 1
        is_deep = not self._one_by_one and not self._loops and index >= MOST_DECISIONS
        most = MOST_RUNS * 8 if self._loops else MOST_ONE_BY_ONE if self._one_by_one else MOST_RUNS
        if is_deep or self._runs >= most or self._tried >= MOST_TRIED:
            raise _refused(decision, self._too_many())
        other = other or self._side(run, index)
        if _count(other, index, decision) > 1 and self._rolled(run, index, not decision.args[1]):
            return {}
        return self._join_one(run, index, end, other)

    def _join_one(self, run: ModuleRun, index: int, end: int, other: ModuleRun | None) -> Joined:
        """Joins the decision of this index, and those after it."""
        is_marked = self._one_by_one and not self._loops
        found = self._meeting(run, index, other) if is_marked and other is not None else None
        if found is not None and other is not None:
            return self._grafted(run, index, end, other, found)
        if end < len(run.tape.decided) and is_marked:
            raise CannotJoin("its sides overlap with those of others")
        return self._joined_now(run, index, end, other, is_marked)

    def _joined_now(
        self, run: ModuleRun, index: int, end: int, other: ModuleRun | None, is_marked: bool
    ) -> Joined:
        """Joins all later decisions of both recordings, then these."""
        joined = self._join(run, index + 1, end)
        decision = run.tape.decided[index]
        if other is None:
            _keep_without_side(run.tape, decision, is_marked)
        else:
            self._join(other, index + 1, len(other.tape.decided))
            opposite = other.tape.decided[index]
            try:
                joined |= join(run.tape, decision, other.tape, opposite, marks=is_marked)
            except CannotJoin as reason:
                raise _refused(decision, str(reason)) from None
            merge(run, other)
        if not is_marked:
            self._forget(run, index)
        return joined

    def _meeting(self, run: ModuleRun, index: int, other: ModuleRun) -> Meeting | None:
        """Returns where a side meets a run before decisions that both have; None where there are none, or
        where a Value is used in the place of several.
        """
        if run.top not in self._before:
            self._before[run.top] = snapshot(run.top)
        top = self._before[run.top]
        opposite = other.tape.decided[index]
        try:
            found = meeting(top, run.tape.decided[index], other.top, opposite)
        except CannotJoin:
            return None
        ones = Counter(one for one, _ in found.tail.used)
        if not found.decisions() or max(ones.values(), default=0) > 1:
            return None
        return None if any(one.captured is not None for one, _ in found.tail.joins) else found

    def _grafted(self, run: ModuleRun, index: int, end: int, other: ModuleRun, found: Meeting) -> Joined:
        """Joins what is between a decision and the place where both sides meet; what follows is explored
        once.
        """
        decision, after, top = run.tape.decided[index], found.decisions(), run.top
        here, there = len(run.tape.decided) - after, len(other.tape.decided) - after
        if here > end:
            raise CannotJoin("its sides overlap with those of others")
        self._before.setdefault(other.top, snapshot(other.top))
        later = self._join(run, here, end)
        scope = found.chains[0][found.level].scope
        if run.top is not top:  # a loop was found
            return self._joined_now(run, index, here, other, is_marked=True)
        live = chain(run.top, decision)[found.level].scope
        length = found.tail.length + len(live.items) - len(scope.items)
        inner = self._join(run, index + 1, here), self._join(other, index + 1, there)
        pairs: dict[Value, Pair] = {}
        for one, two in found.tail.used:
            pair = inner[0].get(one, one), inner[1].get(two, two)
            if not found.known.has(one, two) or pair != (one, two):
                pairs[one] = pair
        made = graft(run.tape, decision, found, length, pairs)
        self._grafts += 1
        merge(run, other)
        return {**inner[0], **made, **later}

    def _is_own(self, run: ModuleRun, index: int) -> bool:
        """Whether the decision of this index is the one of the loop that is explored."""
        if not self._loops:
            return False
        before, forced, place = self._loops[-1]
        decided = sum(str(each.source) == place for each in run.tape.decided[len(before) : index])
        return str(run.tape.decided[index].source) == place and decided <= forced.loops[place][1]

    def _forget(self, run: ModuleRun, index: int) -> None:
        """Drops the decisions that are joined from the list, but not those of loops that are explored."""
        run.tape.decided[index:] = [each for each in run.tape.decided[index:] if each in self._own]

    def _rolled(self, run: ModuleRun, index: int, go: bool) -> bool:
        """Makes a loop that decides from the decision of this index on a call; False where there is none."""
        decision, forced = run.tape.decided[index], self._given(run, index)
        place = str(decision.source)
        try:
            loop = DataLoop(lambda forced: self._run(run.changed, forced), forced, place, go, self._endless)
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
        self._join(run, len(forced.first), len(run.tape.decided))
        self._loops.pop()

    def _given(self, run: ModuleRun, index: int) -> Forced:
        """Returns the answers of a run before the decision of this index, and of the loops around it."""
        answers = tuple(each.args[1] for each in run.tape.decided[:index])
        if not self._loops:
            sizes = run.tape.forced is not None and run.tape.forced.sizes
            return Forced(answers, others=self._others, most=MOST_DECIDED, sizes=sizes)
        before, forced, _ = self._loops[-1]
        decided = Counter(str(each.source) for each in run.tape.decided[len(before) : index])
        loops = {place: (go, rounds - decided[place]) for place, (go, rounds) in forced.loops.items()}
        return forced._replace(first=answers, loops=loops)

    def _side(self, run: ModuleRun, index: int) -> ModuleRun | None:
        """Returns a run with the other answer to a decision, on data that has it if possible; None for a
        check of inputs, where the module raises an error, and for sizes that none of those tried lead to.
        """
        self._runs += 1
        decision, given = run.tape.decided[index], self._given(run, index)
        answer = not decision.args[1]
        given = given._replace(first=(*given.first, answer))
        if len(decision.args) > 2:
            return self._at_these_sizes(run, given) if self._rolls else self._at_other_sizes(run, given)
        found = None
        if self._is_example and not run.changed and not self._one_by_one:
            found = next(self._on_other_data(given), None)
        if found is None:
            found = self._forced(run.changed, given, decision)
        if found is not None and decision.args[0].depends:  # not on the number of a round
            place = str(decision.source)
            natural = self._found if self._loops or self._one_by_one else []
            natural = [found] if found in self._found else [*natural]
            inputs = (each.inputs for each in natural if (place, answer) in _answers(each))
            found.sides.append(Side(place, answer, next(inputs, None)))
        return found

    def _at_these_sizes(self, run: ModuleRun, given: Forced) -> ModuleRun | None:
        """Returns a run with the answers at sizes that do not lead to them, where loops have as many rounds;
        where the module fails there, one at other sizes.
        """
        try:
            return self._run(run.changed, given._replace(sizes=True))
        except (Exception, SystemExit):  # the module's own
            return self._at_other_sizes(run, given._replace(sizes=False))

    def _at_other_sizes(self, run: ModuleRun, given: Forced) -> ModuleRun | None:
        """Returns a run at sizes that lead to the answers; where others do, too, it is the same there."""
        first: ModuleRun | None = None
        place = str(run.tape.decided[len(given.first) - 1].source)
        for symbol, inputs in self._resized(run):
            sizes = {**self._inputs, **inputs}
            if not self._tried_sizes.matters(place, symbol) or self._tried_sizes.lead_elsewhere(
                sizes, given.first
            ):
                continue
            try:
                found = self._run(inputs, given)
            except Elsewhere as elsewhere:
                self._tried_sizes.add_elsewhere(sizes, given.first[: elsewhere.count + 1])
                self._tried_sizes.add_result(place, symbol, leads=False)
                continue
            except (Exception, SystemExit):  # the module's own
                continue
            self._tried_sizes.add_run(sizes, found.tape.decided)
            if len(found.tape.decided) < len(given.first):
                continue
            if found.tape.conversions or found.tape.unlike_plain:
                raise CannotJoin("sizes become plain numbers")
            self._tried_sizes.add_result(place, symbol, leads=True)
            if first is None:
                first = found
                if all(_is_other(inputs, each) for each in self._sizes):
                    self._sizes.append(inputs)
            elif [*map(_answer, first.tape.decided)] == [*map(_answer, found.tape.decided)]:
                is_one = any(
                    1 in {*each.shape} - {*self._inputs[name].shape} for name, each in inputs.items()
                )
                if difference(first.tape, found.tape) and not is_one:
                    raise CannotJoin("a side of sizes computes something else at other sizes")
                break
        return first

    def _forced(self, inputs: Inputs, given: Forced, decision: Record) -> ModuleRun | None:
        """Returns a run on the example's data, but with these answers."""
        try:
            found = self._run(inputs, given)
        except TmconvertError:
            raise
        except (Exception, SystemExit) as error:
            natural = next(self._on_other_data(given), None) if not inputs else None
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
        yield from filter(has, self._on_untried_data())

    def _on_untried_data(self) -> Iterator[ModuleRun]:
        for others in self._untried:
            try:
                self._found.append(self._run_with(others, Forced(most=MOST_FREELY)))
            except (Exception, SystemExit):  # data that the module does not take
                continue
            yield self._found[-1]

    def _too_many(self) -> str:
        place, count = self._met.most_common(1)[0]
        most = f"{MOST_RUNS} runs and {MOST_DECISIONS} decisions one after the other"
        shown = f"both sides of all decisions are more than {most}; most are at {place} ({count})"
        reason = self._reasons.get(place)
        return f"{shown}, which cannot be a loop of the file: {reason}" if reason else shown


def _answers(run: ModuleRun) -> set[tuple[str, bool]]:
    return {*map(_answer, run.tape.decided)}


def _answer(decision: Record) -> tuple[str, bool]:
    return str(decision.source), decision.args[1]


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


def _is_other(one: Inputs, two: Inputs) -> bool:
    return {name: each.shape for name, each in one.items()} != {
        name: each.shape for name, each in two.items()
    }


def _keep_without_side(tape: Tape, decision: Record, is_marked: bool) -> None:
    """Drops a decision whose other side is a check; one of sizes becomes a guard."""
    step = chain(tape.top, decision)[-1]
    kept: list[Record] = [decision] if is_marked else []
    if len(decision.args) > 2:
        taken = ("eq", decision.args[2], int(decision.args[1]), True)
        kept.append(Record("tm.assume", False, taken, {}, (), decision.source))
    else:
        tape.checks.setdefault(str(decision.source))
    step.scope.items[step.at : step.at + 1] = kept


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
