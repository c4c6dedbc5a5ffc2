"""Selects sizes for the verification of dynamic dimensions, and checks the ranges in which they are valid.

A guard is a comparison of sizes whose outcome for the example the graph relies on. If the source itself fails
where the guard does not hold, as for an index beyond a table, the file need not support these sizes. If the
source computes something else there, the file would be wrong: this is an error unless the caller accepts the
range.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.conversion.io_overrides import BoundModel
from tmconvert.errors.source import Source
from tmconvert.ir import Expr, InternalGraph, TensorNode, TensorType, TracedModule
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.subgraphs import nested
from tmconvert.ir.symbolic.data_dependent import anonymous
from tmconvert.ir.symbolic.dims import Dim, Symbol, example_count, of, substituted
from tmconvert.ir.symbolic.journal import MAX_COUNTED, MAX_TRIED, Guard, SizeJournal, summarized
from tmconvert.ir.symbolic.signs import thresholds
from tmconvert.ir.traced_module import Example
from tmconvert.ir.tree import leaves
from tmconvert.passes.normalize import Normalized
from tmconvert.symbolics.op import Op
from tmconvert.verification.inputs import drawn_inputs

MAX_EQUAL = 8  # equalities of sizes that are tried
MAX_CHOICES = 4  # branches on sizes whose sides are both compared
MAX_EQUAL_SIZE = 64  # the largest size that is tried for one
MAX_EVALUATED = 1 << 20  # bytes of all results of models that are evaluated at other sizes before
MAX_GUARDED = 1 << 27  # the same, where otherwise a guard would stay
MAX_BYTES = 1 << 28  # of the activations at the largest sizes that a file is compared at
Sizes = Mapping[str, int]


@dataclass
class Trial:
    """The source at some sizes: its graph, and the source framework's outputs there, if known."""

    sizes: Sizes
    graph: InternalGraph
    reference: Example | None = None


class SizeChecks:
    """Compares a symbolic graph with its source at static sizes."""

    def __init__(
        self,
        opened: BoundModel,
        module: TracedModule,
        symbolic: Normalized,
        catalogue: Mapping[str, Op],
        *,
        has_source: bool,
    ) -> None:
        self.opened, self.catalogue = opened, catalogue
        self.types = _types(symbolic.graph, {})
        self.rerun = module.rerun if has_source and not module.is_edited() else None
        self.symbolic, self.positions = symbolic, module.positions
        self._evaluated: dict[tuple[tuple[str, int], ...], bool | None] = {}
        self._refused: dict[tuple[tuple[int, ...], ...], bool] = {}
        self._corners: list[Sizes] | None = None
        # now, since passes change the graph
        self.graph = symbolic.graph.copy()
        self.steps = [(_result_types(expr), expr.source) for expr in symbolic.graph]

    def example(self, journal: SizeJournal) -> Trial | None:
        """Returns the source at the example's sizes; None, with specialized sizes in ``journal``, where they
        differ.

        A size of 1 is specialized if the source computes something else at 1 than at other sizes.
        """
        sizes = self.opened.example()
        trial = self._trial(sizes)
        if trial is not None:
            return trial
        others = self.opened.other()
        ones = [symbol for symbol in self.opened.symbols.values() if symbol.example < 2]
        culprits = [
            symbol for symbol in ones if self._trial({**others, symbol.name: sizes[symbol.name]}) is None
        ]
        if journal.specialized:  # normalizing found that out, and has the place
            return None
        journal.place = "the model"
        for symbol in culprits or ones or self.opened.symbols.values():
            reason = f"computes something else at {sizes[symbol.name]} than at other sizes"
            journal.specialize(of(symbol), reason if ones else "has other shapes than with static sizes")
        return None

    def others(self, guards: Sequence[Guard]) -> tuple[list[Trial], list[tuple[Guard, Sizes]], list[Guard]]:
        """Returns the source at other sizes that satisfy ``guards``, with guards of minimum sizes found, and
        sizes beyond these; and guards for a size of 1 that is refused while the source cannot be run.
        """
        found, least, unknown = list[Trial](), list[tuple[Guard, Sizes]](), list[Guard]()
        other = next((sizes for sizes in self._candidates() if _all_hold(guards, sizes)), None)
        for sizes in (other, self._large(guards)):
            trial = self._trial(sizes) if sizes and _all_hold(guards, sizes) else None
            if trial is not None and trial.sizes not in [each.sizes for each in found]:
                found.append(trial)
        for symbol in self.opened.symbols.values():
            sizes = {**self.opened.other(), symbol.name: symbol.unit}
            if symbol.example < 2 or not _all_hold(guards, sizes):
                continue
            trial = self._trial(sizes)
            if trial is not None:
                found.append(trial)
                continue
            guard = Guard(of(symbol) - 2, frozenset({0, 1}), source=self._place(sizes))
            if self._runs(sizes):
                least.append((guard, {**self.opened.other(), **self.opened.ones(guard)}))
            elif self.rerun is None:  # its runtime may compute something, as of a window that is larger
                unknown.append(guard)
        for guard, sizes in self._above_smallest():
            trial = self._trial(sizes) if _all_hold(guards, sizes) else None
            if trial is not None and self._is_evaluated(trial):
                found.append(trial)
            elif _all_hold(guards, sizes) and self._runs(sizes) and not self._is_same(guard, sizes):
                least.append((guard._replace(source=self._place(sizes)), sizes))
        for guard in self._choices():
            for sizes in self._beyond(guard):
                if sizes in [each.sizes for each in found] or not _all_hold(guards, sizes):
                    continue
                trial = self._trial(sizes)
                if trial is not None:
                    found.append(trial)
                elif self._runs(sizes):
                    least.append((guard._replace(source=self._place(sizes)), sizes))
        known = {name for guard, _ in least for name in guard.difference.symbols}
        parts = [symbol for symbol in self.opened.parts() if symbol.name not in known]
        return found, [*least, *filter(None, map(self._not_empty, parts))], unknown

    def _choices(self) -> list[Guard]:
        """Returns guards for each side of the branches on sizes, which hold where it is not taken."""
        calls = [expr for graph in nested(self.graph) for expr in graph]
        choices = dict.fromkeys(expr.kwargs.get("choice") for expr in calls)
        sizes = [each for each in choices if isinstance(each, Dim)][:MAX_CHOICES]
        return [Guard(each, frozenset({value})) for each in sizes for value in (0, 1)]

    def _candidates(self) -> Iterator[Sizes]:
        """Yields other sizes, then multiples of the example, which satisfy more guards."""
        yield self.opened.other()
        example = self.opened.example()
        for factor in (2, 3, 5):
            yield {name: factor * size for name, size in example.items()}
            yield {name: factor * size + 1 for name, size in example.items()}

    def _above_smallest(self) -> Iterator[tuple[Guard, Sizes]]:
        """Yields the least sizes of sums, each with the guard that the sum is larger."""
        for sizes in self._smallest():
            for total in self.opened.sums():
                guard = Guard(total - substituted([total], sizes)[0], frozenset({1}))
                if guard.holds(self.opened.example()):
                    yield guard, sizes

    def _smallest(self) -> list[Sizes]:
        """Returns sizes at which a sum of sizes is least: all are 1, or one of them is 0."""
        if self._corners is None:
            self._corners = []
            for total in self.opened.sums():
                ones = {name: symbol.unit for name, symbol in total.symbols.items()}
                self._corners.append({**self.opened.other(), **ones})
                for part in total.symbols:
                    if self._trial({**self.opened.other(), part: 0}) is not None:
                        self._corners.append({**self.opened.other(), **ones, part: 0})
        return self._corners

    def _not_empty(self, symbol: Symbol) -> tuple[Guard, Sizes] | None:
        """Returns a guard that the size is not 0, with sizes where it is, if the trace is not valid there."""
        empty = {**self.opened.other(), symbol.name: 0}
        if not self._needs_elements(empty) or not self._runs(empty):
            return None
        return Guard(of(symbol) - 1, frozenset({0, 1}), source=self._place(empty)), empty

    def equal(
        self, unequal: Mapping[Dim, Source | None], guards: Sequence[Guard]
    ) -> tuple[list[Trial], list[tuple[Guard, Sizes]]]:
        """Returns the source where sizes are equal that were taken for unequal, such as a slice of one row
        that is squeezed; or a guard that they are not, with these sizes, where it has other shapes there.
        """
        found, broken = list[Trial](), list[tuple[Guard, Sizes]]()
        for difference, source in list(unequal.items())[:MAX_EQUAL]:
            sizes = next((sizes for sizes in self._zeros(difference) if _all_hold(guards, sizes)), None)
            trial = None if sizes is None else self._trial(sizes)
            if trial is not None:
                found.append(trial)
            elif sizes is not None and self._runs(sizes):
                broken.append((Guard(difference, frozenset({-1, 1}), source=source), sizes))
        return found, broken

    def _zeros(self, difference: Dim) -> Iterator[Sizes]:
        """Yields small sizes at which ``difference`` is zero."""
        for name in difference.symbols:
            if name in self.opened.symbols:
                unit = self.opened.symbols[name].unit
                for number in range(unit, MAX_EQUAL_SIZE + 1, unit):
                    sizes = {**self.opened.other(), name: number}
                    try:
                        is_zero = substituted([difference], sizes)[0] == 0
                    except ZeroDivisionError:  # a quotient of it has no value there
                        continue
                    if is_zero:
                        yield sizes

    def broken(self, guard: Guard) -> Sizes | None:
        """Returns sizes outside of the guard at which the source runs; None if it fails at all tried ones."""
        tried = itertools.chain(self._beyond(guard), self._beyond(guard, is_far=True))
        return next((each for each in tried if self._runs(each) and not self._is_same(guard, each)), None)

    def excluded(self, guard: Guard) -> Sizes | None:
        """Returns sizes that a restriction of the model excludes although the source runs there.

        Of several sizes none is 1, which is broadcast to others.
        """
        free = copy.copy(self)
        free.opened, free._corners = self.opened._replace(shapes=self.opened.unrestricted or {}), []
        several = guard.difference.symbols if len(guard.difference.symbols) > 1 else {}
        return next(
            (
                sizes
                for sizes in free._beyond(guard)
                if all(sizes[name] > 1 for name in several) and free._runs(sizes)
            ),
            None,
        )

    def is_needless(self, guard: Guard) -> bool:
        """Whether the source does the same at all sizes outside of the guard that were tried, or fails there.

        For a guard that is no equality, it must not fail at all of them.
        """
        return guard.is_of_equality or any(self._is_same(guard, sizes) for sizes in self._beyond(guard))

    def _is_same(self, guard: Guard, sizes: Sizes) -> bool:
        """Whether the source makes the calls of the trace where a guard does not hold.

        Where the guard is no equality of two sizes, the graph must compute the same, too: other guards made
        it.
        """
        if self.rerun is None or not self.rerun.is_same_at(self._shapes(sizes)):
            return False
        if guard.is_of_equality:
            return True
        if guard.is_ours or guard.is_of_target:
            return False
        key = tuple(sizes.items())
        if key not in self._evaluated:
            self._evaluated[key] = self._evaluates_to(self._computed(sizes), sizes, MAX_GUARDED)
        return self._evaluated[key] is True

    def _beyond(self, guard: Guard, *, is_far: bool = False) -> Iterator[Sizes]:
        """Yields for each size in the guard the next smaller and larger one at which it does not hold, and
        the least sizes; those that are ``is_far`` are about twice as far away.
        """
        start = self.opened.other()
        for name, symbol in guard.difference.symbols.items():
            if name not in self.opened.symbols:
                continue
            for base in ({**self.opened.example()}, start):
                around = base[name] // symbol.unit
                below, above = range(around, 0, -1), range(around + 1, around + MAX_TRIED)
                for candidates in (below, above):
                    numbers = np.asarray(candidates, np.int64) * symbol.unit
                    broken = guard.broken_at({**base, name: numbers})
                    first = int(broken.argmax())
                    chosen = min(2 * first + 1, len(numbers) - 1) if is_far else first
                    if broken.any() and broken[chosen]:
                        yield {**base, name: int(numbers[chosen])}
        if len(guard.difference.symbols) > 1:
            yield from self._all_equal(guard, start)
            yield from (
                each
                for each in ({**start, **self.opened.ones(guard)}, *self._smallest())
                if not guard.holds(each)
            )

    def _all_equal(self, guard: Guard, start: Sizes) -> Iterator[Sizes]:
        """Yields the first sizes that are equal to each other at which the guard does not hold: a comparison
        that follows it may be the one of height and width.
        """
        names = [name for name in guard.difference.symbols if name in self.opened.symbols]
        unit = math.lcm(*(self.opened.symbols[name].unit for name in names))
        numbers = np.arange(1, MAX_COUNTED, dtype=np.int64) * unit
        broken = guard.broken_at({**start, **dict.fromkeys(names, numbers)})
        if names and broken.any():
            yield {**start, **dict.fromkeys(names, int(numbers[broken.argmax()]))}

    def _large(self, guards: Sequence[Guard]) -> Sizes | None:
        """Returns sizes larger than all that they are compared with, if the activations are not too large."""
        sizes = dict(self.opened.other())
        differences = [guard.difference for guard in guards]
        shapes = [each.shape for each in self._result_types()]
        for name, number in thresholds([differences, shapes]).items():
            if name in sizes:
                unit = self.opened.symbols[name].unit
                sizes[name] = max(sizes[name], (number + 2) * unit)
        if sizes == self.opened.other():
            sizes = {name: 2 * size + 1 * self.opened.symbols[name].unit for name, size in sizes.items()}
        return sizes if self._bytes(sizes) <= MAX_BYTES else None

    def _bytes(self, sizes: Sizes) -> int:
        inputs = [node.type for node in self.symbolic.graph.inputs if isinstance(node, TensorNode)]
        types = [*inputs, *self._result_types()]
        return sum(example_count(substituted(each.shape, sizes)) * each.dtype.itemsize for each in types)

    def _result_types(self) -> list[TensorType]:
        nodes = [node for expr in self.symbolic.graph for node in expr.outputs]
        return [node.type for node in nodes if isinstance(node, TensorNode)]

    def _trial(self, sizes: Sizes) -> Trial | None:
        """Returns the source at these sizes; None where it is not supported, or has unexpected types."""
        with SizeJournal():
            plain = self.opened.normalized(self.catalogue, sizes)
        if plain.unsupported or _types(plain.graph, {}) != _substituted(self.types, sizes):
            return None
        found = self._computed(sizes)
        if isinstance(found, Example) and self._differs(plain.graph, found, sizes):
            return None
        return None if isinstance(found, str) else Trial(sizes, plain.graph, found)

    def _differs(self, plain: InternalGraph, reference: Example, sizes: Sizes) -> bool:
        """Whether the symbolic graph computes something else than the source, for small models.

        As where an axis of one element is dropped, later calls use another one, and the outputs have the same
        shapes nevertheless.
        """
        is_same = self._has_types_of(plain, sizes)
        return not is_same and self._evaluates_to(reference, sizes, MAX_EVALUATED) is False

    def _has_types_of(self, plain: InternalGraph, sizes: Sizes) -> bool:
        """Whether the results of all steps have the types of a graph at static sizes."""
        return [_substituted(types, sizes) for types, _ in self.steps] == [
            anonymous(_result_types(expr)) for expr in plain
        ]

    def _is_evaluated(self, trial: Trial) -> bool:
        """Whether the symbolic graph has the types of the trial, or is evaluated to its outputs.

        Without the source framework, as for a model that was loaded, the reference is the trial's graph.
        """
        if self._has_types_of(trial.graph, trial.sizes) or self._bytes(trial.sizes) > MAX_EVALUATED:
            return True
        reference = trial.reference if self.rerun is not None else self._reference_of(trial.graph)
        return self._evaluates_to(reference, trial.sizes, MAX_EVALUATED) is True

    def _reference_of(self, plain: InternalGraph) -> Example | None:
        """Returns random inputs of a graph at static sizes, and its outputs; None if it is not evaluated."""
        inputs = tuple(drawn_inputs(plain, self.catalogue))
        outputs = self._evaluated_outputs(plain, inputs, {})
        return None if outputs is None else Example(inputs, tuple(outputs))

    def _evaluates_to(self, reference: Example | str | None, sizes: Sizes, most: int) -> bool | None:
        """Whether the symbolic graph computes these outputs; None where it is too large, or not evaluated."""
        if not isinstance(reference, Example) or reference.outputs is None:
            return None
        if self._bytes(sizes) > most:
            return None
        made = self._evaluated_outputs(self.graph, reference.inputs, sizes)
        if made is None:
            return None
        pairs = zip(made, reference.outputs, strict=False)
        return all(one.shape == two.shape and _is_close(one, two) for one, two in pairs)

    def _evaluated_outputs(
        self, graph: InternalGraph, inputs: Sequence[np.ndarray], sizes: Sizes
    ) -> list[np.ndarray] | None:
        """Returns the outputs of a graph at some sizes in NumPy; None where an op is not evaluated.

        Then the file is compared with the reference nevertheless.
        """

        def evaluate(expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
            definition: Any = self.catalogue[expr.function]  # type: ignore[attr-defined]
            return definition.evaluate(*substituted((args, kwargs), sizes))

        try:
            with SizeJournal():  # what a kernel makes of sizes here restricts none of the file's
                made = Interpreter(graph, evaluate=evaluate).run(*inputs)
        except Exception:
            return None
        return [np.asarray(each) for each in leaves(made)]

    def _needs_elements(self, sizes: Sizes) -> bool:
        """Whether a guard of the trace that a size is at least 1 does not hold at these sizes."""
        with SizeJournal():
            plain = self.opened.normalized(self.catalogue, sizes)
        refused = [each.expr for each in plain.unsupported if each.op == "tm.assume"]
        return any(expr.args[0] == "ge" and expr.args[2] == 1 for expr in refused)

    def _place(self, sizes: Sizes) -> Source | None:
        """Returns the line of the first call that is unsupported or has other result types at these sizes."""
        with SizeJournal():
            plain = self.opened.normalized(self.catalogue, sizes)
        for found in plain.unsupported:
            return found.expr.source
        steps = [(_result_types(expr), expr.source) for expr in plain.graph]
        for (types, _), (plain_types, source) in zip(self.steps, steps, strict=False):
            if plain_types != _substituted(types, sizes):
                return source
        further = [*self.steps[len(steps) :], *steps[len(self.steps) :]]
        return further[0][1] if further else None

    def _computed(self, sizes: Sizes) -> Example | str | None:
        """Returns the source framework's outputs, or its error; None where it is not available."""
        if self.rerun is None:
            return None
        return self.rerun.at(self._shapes(sizes))

    def _shapes(self, sizes: Sizes) -> list[tuple[int, ...]]:
        return [tuple(substituted(list(shape), sizes)) for shape in self.opened.shapes.values()]

    def _runs(self, sizes: Sizes) -> bool:
        """Whether the source runs at these sizes.

        Where it cannot be asked: unless a call is refused there, other than for the way that was taken.
        """
        found = self._computed(sizes)
        if found is not None:
            return not isinstance(found, str)
        key = tuple(self._shapes(sizes))
        if key not in self._refused:
            with SizeJournal():
                self._refused[key] = self.opened.normalized(self.catalogue, sizes, stops=True).refused
        return not self._refused[key]


def checked_sizes(
    checks: SizeChecks, trials: list[Trial], opened: BoundModel, journal: SizeJournal, *, accept_range: bool
) -> tuple[list[Trial], list[Guard]]:
    """Returns the references for the file, and all guards.

    Raises SizesSettled for a guard that only a pass made: its sizes have to be specialized. Raises
    UnsupportedError TM2030 if the model computes something else where a guard does not hold, unless all
    texts that it has positions for are within the guard.
    """
    guards = [*opened.bounds(), *journal.guards]
    others, broken, unknown = checks.others(guards)
    equal, unequal = checks.equal(journal.unequal, [*guards, *(guard for guard, _ in broken)])
    broken += unequal
    found = [guard for guard, _ in broken]
    needless, parts = set[Guard](), frozenset(symbol.name for symbol in opened.parts())
    for guard in (each for each in guards if not _is_of_data(each)):
        sizes = checks.broken(guard)
        if sizes is None and (guard.is_always_true(parts) or checks.is_needless(guard)):
            needless.add(guard)
        elif sizes is not None and guard.is_ours:
            journal.place = "the conversion"
            journal.specialize(guard.difference, f"would be valid for {summarized([guard])[0]} only")
        elif sizes is not None:
            broken.append((guard, sizes))
    journal.check()
    for guard in dict.fromkeys(opened.restrictions):
        sizes = checks.excluded(guard)
        if sizes is not None:
            broken.append((guard, sizes))
            found.append(guard)
    if broken and not accept_range:
        from tmconvert.conversion.refused_ranges import refuse_ranges

        refuse_ranges(broken, opened.symbols, checks.positions)
    others += [trial for trial in equal if trial.sizes not in [each.sizes for each in others]]
    needed = [guard for guard in guards if guard not in needless]
    return [*trials, *others], [*needed, *found, *unknown]


def _result_types(expr: Expr) -> list[TensorType]:
    return [node.type for node in expr.outputs if isinstance(node, TensorNode)]


def _types(graph: InternalGraph, sizes: Sizes) -> list[TensorType]:
    types = [node.type for node in graph.outputs if isinstance(node, TensorNode)]
    return _substituted(types, sizes)


def _substituted(types: Sequence[TensorType], sizes: Sizes) -> list[TensorType]:
    return anonymous([TensorType(each.dtype, substituted(each.shape, sizes)) for each in types])


def _is_close(one: np.ndarray, two: np.ndarray) -> bool:
    if two.dtype.kind != "f":
        return np.array_equal(one, two)
    scale = float(np.max(np.abs(two), initial=0, where=np.isfinite(two)))
    return np.allclose(one, two, rtol=1e-2, atol=1e-2 * scale, equal_nan=True)


def _all_hold(guards: Sequence[Guard], sizes: Sizes) -> bool:
    return all(guard.holds(sizes) for guard in guards)


def _is_of_data(guard: Guard) -> bool:
    """Whether the guard is of a data-dependent size."""
    return any(symbol.from_data for symbol in guard.difference.symbols.values())
