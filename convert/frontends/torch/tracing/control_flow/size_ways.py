"""Decisions on open sizes: ``if n % 2: ...``, ``if n > 128: ...``, ``if h > w: ...``.

A comparison of sizes whose outcome changes what the module computes is a decision, whose condition is a size
of 0 or 1. Runs at other sizes show its sides with real shapes; they are joined to calls of ``torch.cond``
with the condition as the keyword ``choice``: what the sides return may differ in its sizes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import torch

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.data.integers import comparisons_of_data
from tmconvert.frontends.torch.tracing.recording.tape import Record, Tape
from tmconvert.frontends.torch.tracing.sizes import differences, validate_dynamic_shapes
from tmconvert.frontends.torch.tracing.sizes.integers import CONDITION
from tmconvert.ir.tree import leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.loops.rolling import Loops

Place = tuple[str, str]  # of a comparison: the line and the operator
MOST_TRIED = 24  # sizes of each symbol
MOST_ELEMENTS = 1 << 28  # of a tensor in a run in search of another side
FRUITLESS = 48  # sizes of a symbol after which it does not matter
Inputs = Mapping[str, torch.Tensor]
Answers = tuple[bool, ...]
T = TypeVar("T")


class FurtherDecisions(Exception):
    """Other comparisons have to be decisions, too."""

    def __init__(self, places: set[Place]) -> None:
        super().__init__("other comparisons decide, too")
        self.places = places


def deciding(
    checks: Mapping[str, validate_dynamic_shapes.Agreement], loops: Loops | None = None
) -> set[Place]:
    """Returns the lines and operators of the comparisons that explain other calls at other sizes, but not
    those that count the rounds of ``loops``, and of what tensors that are made of sizes decide.
    """
    guards = {guard for check in checks.values() for guard in check.needed}
    rounds = () if loops is None else loops.counting
    lost = {place for check in checks.values() for place in check.lost if place[1] == CONDITION}
    return lost | {(str(guard.source), guard.args[0]) for guard in guards if str(guard.source) not in rounds}


def decided_otherwise(first: Tape, second: Tape) -> set[Record]:
    """Returns the guards of ``first`` whose lines also have the other outcome in ``second``, whose calls may
    be joined elsewhere, so that sizes cannot be matched.
    """
    outcomes = {(guard.source, guard.args[0], guard.args[-1]) for guard, _ in differences.guards_of(second)}
    return {
        guard
        for guard, _ in differences.guards_of(first)
        if (guard.source, guard.args[0], not guard.args[-1]) in outcomes
    }


def with_both_sides(
    again: Callable[..., T],
    given: Collection[Place],
    checks: Mapping[str, validate_dynamic_shapes.Agreement],
    loops: Loops | None,
) -> T | None:
    """Traces ``again`` with both sides of comparisons of sizes; None where they cannot be in one file.

    The guards that then remain have the reason. The comparisons ``given`` are decisions already.
    """
    if not (places := deciding(checks, loops)):
        return None
    try:
        return trace_deciding(again, given, places)
    except Exception as error:  # the file is that of one side, for a range of sizes
        from tmconvert.frontends.torch.tracing.control_flow.joining import CannotJoin
        from tmconvert.frontends.torch.tracing.loops.rolling import Loops

        if loops is None and isinstance(error, CannotJoin):  # a loop may be in the other side alone
            with suppress(Exception):
                return trace_deciding(functools.partial(again, loops=Loops(())), given, places)
        for guard in {guard for check in checks.values() for guard in check.needed}:
            guard.kwargs = {"why": reason_of(error)}
    return None


def with_decided_numbers(again: Callable[..., T], given: Collection[Place], tape: Tape) -> T | None:
    """Traces ``again`` with comparisons of numbers that Python read of tensors as decisions.

    Returns None where there are no further ones, or both sides cannot be in one file, which then has guards
    on the data.
    """
    places = comparisons_of_data(tape)
    if not places - {*given}:
        return None
    with suppress(Exception):
        return trace_deciding(again, given, places)
    return None


def trace_deciding(again: Callable[..., T], given: Collection[Place], places: Collection[Place]) -> T | None:
    """Traces ``again`` with further comparisons as decisions than those ``given``, and with those that they
    lead to; None where all of them are known.
    """
    known = set(given)  # those stay guards that are no decisions
    while not known.issuperset(places):
        known |= {*places}
        try:
            return again(deciding=frozenset(known))
        except FurtherDecisions as further:
            places = further.places
    return None


def reason_of(error: Exception) -> str:
    """Returns why both sides could not be written, in one line with the place of the reason."""
    if not isinstance(error, TmconvertError):
        text = str(error).partition("\n")[0]
        is_own = type(error).__module__.startswith("tmconvert")
        return text if is_own and text else f"{type(error).__name__}: {text}"
    reasons = [note for kind, note in error.notes if kind == "note"]
    text = reasons[0] if reasons else error.message
    return f"{error.source}: {text}" if error.source else text


class TriedSizes:
    """Sizes that were tried in search of the sides of decisions, in runs that differ in sizes and data only.

    A symbol is not tried again for a decision if many of its sizes led to the same side, and those of another
    symbol to both sides: most often it is a batch.
    """

    def __init__(self) -> None:
        self._leading: set[tuple[str, str]] = set()  # lines of decisions, with symbols that led to both sides
        self._fruitless: Counter[tuple[str, str]] = Counter()
        self._elsewhere: set[tuple[object, Answers]] = set()  # shapes, with answers that they do not lead to

    def lead_elsewhere(self, inputs: Inputs, answers: Answers) -> bool:
        """Whether inputs of these sizes are known not to lead to the answers."""
        shapes = _shapes(inputs)
        return any((shapes, answers[:count]) in self._elsewhere for count in range(len(answers) + 1))

    def matters(self, place: str, symbol: str) -> bool:
        """Whether sizes of a symbol may lead to the other side of the decision at a line."""
        is_known = any(line == place for line, _ in self._leading)
        return (place, symbol) in self._leading or not is_known or self._fruitless[place, symbol] < FRUITLESS

    def add_result(self, place: str, symbol: str, *, leads: bool) -> None:
        """Notes whether a size of a symbol led to the other side of the decision at a line."""
        if leads:
            self._leading.add((place, symbol))
        else:
            self._fruitless[place, symbol] += 1

    def add_elsewhere(self, inputs: Inputs, answers: Answers) -> None:
        """Notes that inputs of these sizes do not lead to the last of the answers after the others."""
        self._elsewhere.add((_shapes(inputs), answers))

    def add_run(self, inputs: Inputs, decided: Sequence[Record]) -> None:
        """Notes the decisions of a run on inputs of these sizes."""
        answers = tuple(each.args[1] for each in decided)
        for number, each in enumerate(decided):
            if len(each.args) > 2:
                self.add_elsewhere(inputs, (*answers[:number], not answers[number]))


def _shapes(inputs: Inputs) -> tuple[object, ...]:
    return tuple((name, tensor.shape) for name, tensor in inputs.items())


def candidates(
    symbols: Sequence[validate_dynamic_shapes.Symbol], example: Inputs, given: Inputs, tape: Tape
) -> Iterator[tuple[str, Inputs]]:
    """Yields inputs of other sizes than the ``given`` ones, with the symbol that is another: near those,
    small and large ones, those of other axes, and those around the numbers that the code compares with; of
    the symbols by turns.
    """
    numbers = {
        leaf
        for record in tape.top.records()
        for leaf in leaves((record.args, record.kwargs))
        if type(leaf) is int and record.name.startswith(("operator.", "tm."))
    }
    around = [number + step for number in sorted(numbers) for step in (0, 1, -1)]
    elements = sum(tensor.numel() for tensor in example.values())
    now = {
        each.name: given[each.place.input].shape[each.place.axis] if each.place else each.number
        for each in symbols
    }
    extents = sorted({extent for tensor in given.values() for extent in tensor.shape})  # that may be equal
    tried: list[list[tuple[str, int]]] = []
    for symbol in symbols:
        size = now[symbol.name]
        near = [size + 1, size - 1, size + 2, 2 * size, size - 2]
        sizes = dict.fromkeys([*near, *extents, *symbol.others(), *around, validate_dynamic_shapes.FAR])
        largest = validate_dynamic_shapes.FAR_ELEMENTS * max(symbol.number, 1) // max(elements, 1)
        chosen = [each for each in sizes if 1 < each <= max(largest, 2 * symbol.number) and each != size]
        chosen = [each for each in chosen if each < size or _results_fit(tape, size, each)]
        tried.append([(symbol.name, each) for each in [*chosen[:MOST_TRIED], 1]])
    for turn in itertools.zip_longest(*tried):
        for name, size in filter(None, turn):
            yield name, validate_dynamic_shapes.with_sizes(example, symbols, {**now, name: size})


def _results_fit(tape: Tape, size: int, other: int) -> bool:
    """Whether the results of a run are small at another size, to which all axes of this size are assumed to
    change: a batch as long as a text that is long already needs gigabytes.
    """
    results = (each for record in tape.top.records() for each in record.results())
    shapes = {tuple(map(int, each.shape)) for each in results if each.shape}
    return all(
        math.prod(other if extent == size else extent for extent in shape) <= MOST_ELEMENTS
        for shape in shapes
    )
