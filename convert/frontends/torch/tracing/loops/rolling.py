"""Rolls the loops on a tape: copies of a body that a Python loop made become one call with a subgraph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.loops.buffers import buffer_growth
from tmconvert.frontends.torch.tracing.loops.building import rolled
from tmconvert.frontends.torch.tracing.loops.comparisons import changing, counting, lines_of_rounds
from tmconvert.frontends.torch.tracing.loops.copies import LEAST, Differs, copies_in, repeats, steps_of
from tmconvert.frontends.torch.tracing.loops.growth import join_growth
from tmconvert.frontends.torch.tracing.loops.tidy import (
    Item,
    Kind,
    counts_of_parts,
    drop_unused_sizes,
    numbers_of_sizes,
    scopes_of,
    tidy,
)
from tmconvert.frontends.torch.tracing.recording.tape import Scope, Tape, Value
from tmconvert.frontends.torch.tracing.sizes.differences import without_guards
from tmconvert.frontends.torch.tracing.sizes.validate_dynamic_shapes import Symbol
from tmconvert.frontends.torch.tracing.special.gradients import is_close
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.symbolic.open_sizes import not_dynamic
from tmconvert.ir.tree import leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.module_run import ModuleRun

FEW_ROUNDS = 6  # sizes below this often have too few rounds to be found

Signature = frozenset[Kind]  # the calls of a loop's body, with their lines


@dataclass
class Loops:
    """The loops to roll: those of ``signatures``, or all if this is None.

    ``parts`` are the calls with as many results as a size, ``lines`` are those that compare sizes in each
    round, and ``counting`` the lines among them that compare the counter. At ``sizes`` all loops have enough
    rounds to be found. ``counts`` are the rounds that were found, and ``reasons`` why some copies are no
    loop, by their place. ``refused`` are the sizes, with the numbers of the example, that cannot stay dynamic
    where the loops are unrolled. ``is_static`` states that none of the loops is known to depend on a size.
    """

    signatures: Collection[Signature] | None = None
    parts: Collection[Kind] = ()
    lines: Collection[str] = ()
    counting: Collection[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    counts: dict[Signature, list[int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    is_static: bool = False

    @property
    def is_search(self) -> bool:
        """Whether no loop is known, but there may be one in a side of a branch."""
        return self.signatures is not None and not self.signatures and not self.lines

    def roll(self, tape: Tape) -> None:
        """Rolls the loops of a tape, in place."""
        tape.calls = sum(len(scope.items) for scope in scopes_of(tape.top))
        buffer_growth(tape.top)
        join_growth(tape.top)
        tidy(tape.top, self.parts, self.lines)
        pending = [tape.top]
        while pending:
            scope = pending.pop(0)
            own = {*scope.items}
            while self._roll_one(tape.top, scope, own):
                pass
            pending += [
                inner
                for item in scope.items
                for inner in ([item] if isinstance(item, Scope) else item.subgraphs)
            ]
        drop_unused_sizes(tape.top)

    def add(self, others: Loops) -> bool:
        """Adds other loops to these; returns whether these have loops that the others have not.

        Raises Differs where the others were a search, which found none.
        """
        if self.signatures is None or others.signatures is None:
            return False
        own = {*self.signatures} - {*others.signatures}
        if others.is_search and not own:
            raise Differs("no side has a loop", None)
        self.signatures = {*self.signatures, *others.signatures}
        self.parts, self.lines = {*self.parts, *others.parts}, {*self.lines, *others.lines}
        self.counting = {*self.counting, *others.counting}
        self.sizes = {name: max(size, others.sizes.get(name, size)) for name, size in self.sizes.items()}
        return bool(own)

    def _roll_one(self, top: Scope, scope: Scope, own: set[Item]) -> bool:
        """Rolls the longest loop among the items of a scope; False where there is none.

        One that has none of its ``own`` items was made by rolling others.
        """
        if len(scope.items) < LEAST:
            return False
        sizes: dict[Value, int] | None = None
        steps = [[*steps_of(item)] for item in scope.items]
        for start, end, period in repeats(steps):
            body = scope.items[start : start + period]
            if own.isdisjoint(body):
                continue
            signature = frozenset((getattr(each, "name", ""), str(each.source)) for each in body)
            if self.signatures is not None and signature not in self.signatures:
                continue
            sizes = numbers_of_sizes(top) if sizes is None else sizes
            try:
                copies = copies_in(steps, start, end, period, sizes)
                rolled(top, scope, copies)
            except Differs as differs:
                place = str(differs.source or body[0].source)
                self.reasons.setdefault(place, str(differs))
                self.counts.setdefault(signature, []).append((end - start) // period)
                continue
            self.counts.setdefault(signature, []).append(copies.count)
            return True
        return False


def compute_the_same(first: ModuleRun, found: ModuleRun) -> bool:
    """Whether the graph of ``first`` gives the outputs of another run, in which loops have few rounds."""
    extents = [extent for array in found.inputs for extent in array.shape]
    before = [extent for array in first.inputs for extent in array.shape]
    if not any(a < b for a, b in zip(extents, before, strict=True)):
        return False
    try:
        with without_guards(first.tape):
            graph = first.traced(of_run=True)
        made = [leaf for leaf in leaves(run_module(graph, found.inputs)) if isinstance(leaf, np.ndarray)]
    except Exception:  # what the interpreter cannot run at this size is not compared
        return False
    pairs = zip(made, found.outputs, strict=True)
    return all(a.shape == b.shape and is_close(a, b) for a, b in pairs)


def open_loops(run: Callable[[Mapping[str, int]], Tape], symbols: Sequence[Symbol]) -> Loops | None:
    """Returns the loops whose rounds depend on sizes; None where there are none.

    ``run`` returns the tape of a run at other sizes.
    """
    least = {each.name: max(each.number, FEW_ROUNDS) for each in symbols}
    probes = [least, *({**least, name: size} for name, n in least.items() for size in (n + 1, 2 * n))]
    runs = []
    for sizes in probes:
        with suppress(Exception, SystemExit):  # the module's own, at a size that it does not take
            runs.append((sizes, run(sizes)))
    if not runs:
        return None
    tapes = [tape for _, tape in runs]
    parts = _differing([counts_of_parts(tape.top) for tape in tapes])
    lines = lines_of_rounds(tapes)
    reasons, counters = changing(runs, lines), counting(tapes, lines)
    if reasons:
        return Loops((), parts, lines, counters, least, reasons=reasons)
    found = []
    for tape in tapes:
        loops = Loops(parts=parts, lines=lines)
        loops.roll(tape)
        found.append(loops.counts)
        reasons |= loops.reasons
    signatures = _differing(found)
    complete = [sizes for (sizes, _), counts in zip(runs, found, strict=True) if signatures <= counts.keys()]
    sizes = complete[0] if complete else least
    # a loop that only counts has comparisons, but no calls
    if not signatures and not lines:
        return None
    return Loops(signatures, parts, lines, counters, sizes, reasons=reasons)


def _differing(counts: Sequence[Mapping[Any, list[int]]]) -> set[Any]:
    keys = {key for each in counts for key in each}
    return {key for key in keys if any(each.get(key) != counts[0].get(key) for each in counts)}


def lost_sizes(
    loops: Loops | None, symbols: Sequence[Symbol], reasons: Mapping[str, str]
) -> UnsupportedError:
    """Returns the error TM2031 for sizes that cannot stay dynamic, with their numbers in the example.

    Loops ran with a longer example, whose numbers and further reasons are not the user's.
    """
    numbers = {symbol.name: symbol.number for symbol in symbols}
    if loops is None:
        return not_dynamic(reasons, numbers)
    needed = {name: why for name, why in reasons.items() if name in loops.refused} or reasons
    lost = not_dynamic(needed, {**numbers, **loops.refused})
    unrolled = (
        ("also", f"{place} is in a loop that cannot be written: {why}")
        for place, why in loops.reasons.items()
    )
    lost.notes = (*unrolled, *lost.notes)
    return lost
