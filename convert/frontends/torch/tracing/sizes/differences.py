"""Compares the tapes of two runs: at other sizes, and on other data."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.arrays import ComparedData
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Tape, Value, results_of_constants
from tmconvert.ir.tree import leaves, map_leaves


def without(tape: Tape, comparisons: set[Record]) -> None:
    """Removes comparisons from the tape."""
    scopes = [tape.top, *(step for step in steps_of(tape.top) if isinstance(step, Scope))]
    scopes += [body for step in steps_of(tape.top) if isinstance(step, Record) for body in step.subgraphs]
    for scope in scopes:
        scope.items[:] = [item for item in scope.items if item not in comparisons]


@contextmanager
def without_guards(tape: Tape) -> Iterator[None]:
    """Removes all comparisons from the tape within the context."""
    steps = list(steps_of(tape.top))
    scopes = [tape.top, *(step for step in steps if isinstance(step, Scope))]
    scopes += [body for step in steps if isinstance(step, Record) for body in step.subgraphs]
    items = [list(scope.items) for scope in scopes]
    without(tape, {step for step in steps if isinstance(step, Record) and _is_assumption(step)})
    try:
        yield
    finally:
        for scope, kept in zip(scopes, items, strict=True):
            scope.items[:] = kept


def at_least(tape: Tape, tensor: Value, axis: int, least: int, source: Source) -> None:
    """Adds a guard to the tape: the trace is valid for sizes of at least ``least``; ``source`` is a line."""
    size = Value(tape.top, "size_out")
    taken = ("ge", size, least, True)
    tape.top.items += [
        Record("size", True, (tensor, axis), {}, size, source),
        Record("tm.assume", False, taken, {}, (), source),
    ]


class Calls:
    """The calls of a run in a form that is equal to that of another run which makes the same calls.

    ``with_sizes`` keeps comparisons and computations of sizes among them.
    """

    def __init__(self, tape: Tape, *, with_sizes: bool = False) -> None:
        self.tape, self.steps, self._numbers = tape, list(steps_of(tape.top)), _Numbering()
        kept = self.steps if with_sizes else _with_effect(tape, self.steps)
        self.compared = self._numbers.without_layouts(kept)
        results = Record("", False, (tape.top.result,), {}, (), Source(""))
        self.keys = [_key(step, self._numbers) for step in (*self.compared, results)]

    @functools.cached_property
    def guards(self) -> dict[Record, str]:
        """The comparisons of sizes, with their operands as text."""
        pairs = guards_of(self.tape)  # both sides of a branch may have the same one
        return {step: repr(_calculated(step, self._numbers, known)) for step, known in pairs}


class Comparison:
    """The first place where another run does something else, at another size.

    ``message`` is the difference in words, empty for none; ``source`` is the user's line, and ``step`` the
    step of the first run that is another. Another outcome of a comparison of sizes is a difference only if
    later calls differ.
    """

    def __init__(self, first: Calls, second: Tape) -> None:
        self.first, self.second, self.tape = first, Calls(second), second
        self.message, self.source, self.step = _first_difference(self.first, self.second, "at another size")

    @property
    def reason(self) -> str:
        """The difference in words, also from what the other run does with plain integers."""
        return self.tape.unlike_plain or self.message

    @functools.cached_property
    def guards(self) -> frozenset[Record]:
        """The guards of the first run, up to the difference, that the other lacks or decides otherwise."""
        steps, end = self.first.steps, self.step
        if end in steps:  # a size that is read early may be used late
            end = next((step for step in steps[steps.index(end) :] if not _is_of_sizes(step)), None)
        before = set(itertools.takewhile(lambda step: step is not end, steps))  # all for results
        keys = {*self.second.guards.values()}
        found = frozenset(record for record, key in self.first.guards.items() if key not in keys)
        has_branches = any(isinstance(each, Record) and each.name in _BRANCHES for each in steps)
        return (found & before) or (found if has_branches else frozenset())


def difference(first: Tape, second: Tape) -> str:
    """Returns the first difference between two runs at different sizes; empty if there is none."""
    return Comparison(Calls(first), second).message


def difference_of_data(first: Tape, second: Tape, when: str = "on other data") -> tuple[str, Source]:
    """Returns the first difference between two runs at the same sizes, in words, and the user's line.

    Each other outcome of a comparison of sizes is one.
    """
    calls = Calls(first, with_sizes=True), Calls(second, with_sizes=True)
    return _first_difference(*calls, when)[:2]


def _first_difference(first: Calls, second: Calls, when: str) -> tuple[str, Source, Record | Scope | None]:
    of_data = when != "at another size"
    previous: Record | Scope | None = None
    steps = zip(first.compared, second.compared, first.keys, second.keys, strict=False)
    for one, two, key, other in steps:
        if key != other:
            if of_data and _is_assumption(one) and _is_assumption(two):
                return "", Source(""), None
            place = one if _shown(one) else two
            why = ""
            if not of_data:
                from tmconvert.frontends.torch.tracing.sizes.plain_numbers import cause

                why = cause(one, two)
            return f"{_shown(place)} computes something else {when}{why}", place.source or Source(""), one
        previous = one if _shown(one) else previous
    if len(first.compared) == len(second.compared) and first.keys[-1] == second.keys[-1]:
        return "", Source(""), None
    if previous is None:
        return f"the module takes another branch {when}", Source(""), None
    message = f"after {_shown(previous)} the module takes another branch {when}"
    return message, previous.source or Source(""), None


def _with_effect(tape: Tape, steps: Sequence[Record | Scope]) -> list[Record | Scope]:
    """Returns the steps without comparisons of sizes, and without computations that only those or Python use:
    of sizes, and of tensors that Python makes, such as ``float(torch.tensor(scale).log2())``.
    """
    needed, constant = _values((tape.top.result,)), results_of_constants(steps)
    kept: list[Record | Scope] = []
    for step in reversed(steps):
        if isinstance(step, Record) and not step.subgraphs:
            results = list(step.results())
            sizes = _is_of_sizes(step) or constant.issuperset(results)
            if _is_assumption(step) or (results and sizes and needed.isdisjoint(results)):
                continue
        needed |= _values((step.args, step.kwargs, step.result))
        kept.append(step)
    return kept[::-1]


_BRANCHES = ("torch.cond", "torch.where")  # whose sides have what is decided after them, in any order
_LAYOUTS = frozenset(("contiguous", "torch.ops.aten.contiguous.default"))


class _Numbering:
    """Numbers of the Values of a tape, in the order of their first use.

    A change of layout keeps the number: whether a tensor is contiguous depends on its sizes, and one that is
    gets no call on the tape.
    """

    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}
        self._sources: dict[Value, Value] = {}

    def without_layouts(self, steps: Sequence[Record | Scope]) -> list[Record | Scope]:
        """Returns the calls that do not change the layout, and records the operands of the others."""
        kept = []
        for step in steps:
            source = step.args[0] if isinstance(step, Record) and step.name in _LAYOUTS else None
            if isinstance(source, Value) and source.captured is None and isinstance(step.result, Value):
                self._sources[step.result] = self._sources.get(source, source)
            else:
                kept.append(step)
        return kept

    def number(self, value: Value) -> int:
        """Returns the number of the Value; a new one gets the next."""
        return self._numbers.setdefault(self._sources.get(value, value), len(self._numbers))

    def known(self, value: Value) -> int | None:
        """Returns the number of the Value, if it has one."""
        return self._numbers.get(self._sources.get(value, value))


def other_decision(first: Tape, second: Tape) -> str:
    """Returns the place of the first comparison with another outcome on other data; empty for none."""
    pairs = zip(steps_of(first.top), steps_of(second.top), strict=False)
    outcomes = (
        (one, [(step.args[0], step.args[-1:]) for step in (one, two) if _is_assumption(step)])
        for one, two in pairs
    )
    taken = next((one for one, found in outcomes if _is_assumption(one) and found[1:] != found[:1]), None)
    return "" if taken is None else str(taken.source)


def _values(tree: object) -> set[Value]:
    return {leaf for leaf in leaves(tree) if isinstance(leaf, Value)}


def _is_of_sizes(step: Record | Scope) -> bool:
    return isinstance(step, Record) and all(v.shape is None and v.captured is None for v in step.results())


def guards_of(tape: Tape) -> Iterator[tuple[Record, dict[Value, Record]]]:
    """Returns the comparisons of sizes, with the computations by their results."""
    calculations: dict[Value, Record] = {}
    for step in steps_of(tape.top):
        if not isinstance(step, Record):
            continue
        if _is_assumption(step):
            yield step, calculations
        for value in step.results():
            if value.shape is None:
                calculations[value] = step


def _calculated(step: Record, numbers: _Numbering, calculations: Mapping[Value, Record]) -> Any:
    """Returns a comparison or computation with its operands expanded."""

    def leaf(value: object) -> Any:
        if isinstance(value, Value) and value in calculations:
            return _calculated(calculations[value], numbers, calculations)
        return ("value", numbers.known(value)) if isinstance(value, Value) else (type(value).__name__, value)

    return (step.name, *map_leaves(leaf, step.args))


def _is_assumption(step: Record | Scope) -> bool:
    return isinstance(step, Record) and step.name == "tm.assume"


def steps_of(scope: Scope) -> Iterator[Record | Scope]:
    for item in scope.items:
        yield item
        for inner in [item] if isinstance(item, Scope) else item.subgraphs:
            yield from steps_of(inner)
            if inner is not item:  # what a subgraph returns
                yield Record(
                    getattr(item, "name", ""), False, (inner.result,), {}, (), inner.source or Source("")
                )


def _key(step: Record | Scope, numbers: _Numbering) -> Any:
    """Returns the step without data that is specific to one run."""

    def leaf(value: object) -> Any:
        if isinstance(value, Value):
            if value.captured is not None:
                return ComparedData(value.captured)
            return numbers.number(value)
        if isinstance(value, Scope):
            return value.path
        if isinstance(value, float) and math.isnan(value):
            return "nan"
        return (type(value).__name__, value)

    name = step.name if isinstance(step, Record) else step.path
    result = step.result if isinstance(step, Record) else ()
    return (name, *map_leaves(leaf, (step.args, step.kwargs, result)))


def _shown(step: Record | Scope) -> str:
    if isinstance(step, Scope):
        return f"{step.source} (the call of {step.path})" if step.source else ""
    return f"{step.source} ({step.name})"
