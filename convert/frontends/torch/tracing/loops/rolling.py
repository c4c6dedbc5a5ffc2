"""Rolls the loops on a tape: copies of a body that a Python loop made become one call with a subgraph."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.frontends.torch.tracing.loops.building import rolled
from tmconvert.frontends.torch.tracing.loops.copies import Differs, copies_in, repeats, steps_of
from tmconvert.frontends.torch.tracing.loops.tidy import (
    Kind,
    counts_of_parts,
    drop_unused_sizes,
    scopes_of,
    tidy,
)
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Tape, Value
from tmconvert.frontends.torch.tracing.sizes.validate_dynamic_shapes import Symbol, without_guards
from tmconvert.frontends.torch.tracing.special.gradients import is_close
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.tree import leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.module_run import ModuleRun

FEW_ROUNDS = 6  # sizes below this have too few rounds to be found

Signature = frozenset[Kind]  # the calls of a loop's body, with their lines


@dataclass
class Loops:
    """The loops to roll: those of ``signatures``, or all if this is None.

    ``parts`` are the calls with as many results as a size. ``counts`` are the rounds that were found, and
    ``reasons`` why some copies are no loop, by their place.
    """

    signatures: Collection[Signature] | None = None
    parts: Collection[Kind] = ()
    counts: dict[Signature, list[int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def roll(self, tape: Tape) -> None:
        """Rolls the loops of a tape, in place."""
        tape.calls = sum(len(scope.items) for scope in scopes_of(tape.top))
        tidy(tape.top, self.parts)
        pending = [tape.top]
        while pending:
            scope = pending.pop(0)
            while self._roll_one(tape.top, scope):
                pass
            pending += [
                inner
                for item in scope.items
                for inner in ([item] if isinstance(item, Scope) else item.subgraphs)
            ]
        drop_unused_sizes(tape.top)

    def compute_the_same(self, first: ModuleRun, found: ModuleRun) -> bool:
        """Whether the graph of ``first`` gives the outputs of another run, in which loops have few rounds."""
        extents = [extent for array in found.inputs for extent in array.shape]
        before = [extent for array in first.inputs for extent in array.shape]
        if not any(a < FEW_ROUNDS and a < b for a, b in zip(extents, before, strict=True)):
            return False
        try:
            with without_guards(first.tape):
                graph = first.traced()
            made = [leaf for leaf in leaves(run_module(graph, found.inputs)) if isinstance(leaf, np.ndarray)]
        except Exception:  # what the interpreter cannot run at this size is not compared
            return False
        pairs = zip(made, found.outputs, strict=True)
        return all(a.shape == b.shape and is_close(a, b) for a, b in pairs)

    def _roll_one(self, top: Scope, scope: Scope) -> bool:
        """Rolls the longest loop among the items of a scope; False where there is none."""
        sizes = numbers_of_sizes(top)
        steps = [[*steps_of(item)] for item in scope.items]
        for start, end, period in repeats(steps):
            body = scope.items[start : start + period]
            signature = frozenset((getattr(each, "name", ""), str(each.source)) for each in body)
            if self.signatures is not None and signature not in self.signatures:
                continue
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


def open_loops(run: Callable[[Mapping[str, int]], Tape], symbols: Sequence[Symbol]) -> Loops | None:
    """Returns the loops whose rounds depend on sizes; None where there are none.

    ``run`` returns the tape of a run at other sizes.
    """
    least = {each.name: max(each.number, FEW_ROUNDS) for each in symbols}
    probes = [least, *({**least, name: size} for name, n in least.items() for size in (n + 1, 2 * n))]
    tapes = []
    for sizes in probes:
        with suppress(Exception, SystemExit):  # the module's own, at a size that it does not take
            tapes.append(run(sizes))
    parts = _differing([counts_of_parts(tape.top) for tape in tapes])
    found = []
    reasons: dict[str, str] = {}
    for tape in tapes:
        loops = Loops(parts=parts)
        loops.roll(tape)
        found.append(loops.counts)
        reasons |= loops.reasons
    signatures = _differing(found)
    return Loops(signatures, parts, reasons=reasons) if signatures else None


def _differing(counts: Sequence[Mapping[Any, list[int]]]) -> set[Any]:
    keys = {key for each in counts for key in each}
    return {key for key in keys if any(each.get(key) != counts[0].get(key) for each in counts)}


def numbers_of_sizes(top: Scope) -> dict[Value, int]:
    """Returns the numbers of all sizes in this run."""
    found: dict[Value, Any] = {}
    for scope in scopes_of(top):
        for item in scope.items:
            if not isinstance(item, Record) or not isinstance(item.result, Value):
                continue
            if item.result.shape is None and item.result.captured is None:
                number = _number(item, found)
                if number is not None:
                    found[item.result] = number
    return found


def _number(call: Record, known: Mapping[Value, object]) -> Any:
    operands = [known.get(each, each) if isinstance(each, Value) else each for each in call.args]
    home, _, name = call.name.rpartition(".")
    shape: Any = getattr(operands[0], "shape", None)
    if call.name == "size":
        return shape[operands[1]]
    if call.name == "numel":
        return math.prod(shape)
    if any(isinstance(each, Value) for each in operands):
        return None
    function: Callable[..., Any] | None = getattr(
        {"operator": operator, "math": math}.get(home, builtins), name, None
    )
    return None if function is None else function(*operands)
