"""Validates dynamic shapes by re-tracing: the module is run again at other sizes, and the tapes are compared.

A size that Python converted to a plain number (``int(n)``, ``range(n)``, a list of ``n`` layers) causes a
difference between the two tapes, as does a branch that the module takes at one size and not at another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.arrays import ComparedData
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Tape, Value, results_of_constants
from tmconvert.frontends.torch.tracing.sizes.code_constants import sizes_of_loops, telling_sizes
from tmconvert.ir.symbolic.open_sizes import NamedAxis, example_sizes
from tmconvert.ir.tree import leaves, map_leaves

Axes = Mapping[str, Mapping[int, str]]
AGREEING = 2  # runs at other sizes that must do the same
TELLING = 6  # runs at sizes that the code of the module names, at least
TELLING_STEPS = 480  # calls in all these runs together, where there may be more of them
MOST_TELLING = 48
FAR = 19  # a size beyond most numbers of layers or of rows that a module looks for
FAR_ELEMENTS = 1 << 16  # of the inputs at that size: a run with more would take long


@dataclass(frozen=True)
class Symbol:
    """A dimension requested as dynamic: the axes that depend on it, and its size in the example."""

    name: str
    axes: tuple[NamedAxis, ...]
    number: int

    @property
    def place(self) -> NamedAxis | None:
        """Returns the first axis of just this size; None where there are only sums with others."""
        return next((axis for axis in self.axes if axis.size == self.name), None)

    @property
    def is_part(self) -> bool:
        """Whether an axis has the sum of this size and others."""
        from tmconvert.ir.symbolic.text import names_in

        return any(len(names_in(axis.size)) > 1 for axis in self.axes)

    def neighbours(self) -> list[int]:
        """Returns two sizes that show the branches of most modules: a multiple, and the next size."""
        return [2 * self.number, self.number + 1] if self.number > 1 else [3, 4]

    def others(self) -> list[int]:
        """Returns other sizes to test, without 1: multiples first, smaller ones last, for a limited size."""
        steps = (self.number, 2 * self.number, 1, 2, -1, -(self.number // 2))
        sizes = dict.fromkeys(self.number + step for step in steps)
        return [3, 4, 2, 5] if self.number < 2 else [size for size in sizes if size > 1]


def symbols_of(wanted: Axes, inputs: Mapping[str, torch.Tensor]) -> list[Symbol]:
    """Returns the symbols of ``dynamic_shapes``. Raises UsageError TM6014 if they do not fit the inputs."""
    named = []
    for name, axes in wanted.items():
        shape = inputs[name].shape
        for axis, size in axes.items():
            if not -len(shape) <= axis < len(shape):
                raise UsageError("TM6014", f"the input {name!r} {list(shape)} has no axis {axis}")
            named.append(NamedAxis(name, axis % len(shape), size, shape[axis]))
    if not named:
        return []
    numbers = example_sizes(named)
    from tmconvert.ir.symbolic.text import names_in

    using = {symbol: tuple(axis for axis in named if symbol in names_in(axis.size)) for symbol in numbers}
    return [Symbol(symbol, using[symbol], number) for symbol, number in numbers.items()]


def with_sizes(
    inputs: Mapping[str, torch.Tensor], symbols: Sequence[Symbol], numbers: Mapping[str, int]
) -> dict[str, torch.Tensor]:
    """Returns the inputs for these sizes of symbols, and the sizes of the example for the others."""
    sizes = {each.name: each.number for each in symbols} | dict(numbers)
    others = dict(inputs)
    from tmconvert.ir.symbolic.text import size_of

    for axis in dict.fromkeys(axis for each in symbols if each.name in numbers for axis in each.axes):
        others[axis.input] = resized(others[axis.input], axis.axis, int(size_of(axis.size, sizes)))
    return others


def resized(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """Returns the tensor with more or fewer slices along ``axis``, repeated; floats are scaled down each
    time.

    Equal slices would hide exchanged ones.
    """
    count = tensor.shape[axis]
    if not count:
        return tensor.new_zeros([*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]])
    numbers = torch.arange(size)
    repeated = tensor.index_select(axis, numbers % count)
    if size <= count or not tensor.is_floating_point():
        return repeated
    factors = 1 - (numbers // count) / (2.0 * (size // count + 1))
    return repeated * factors.to(tensor.dtype).reshape([-1] + [1] * (tensor.dim() - axis - 1))


class Agreement:
    """The result of validating one symbol by runs at other sizes.

    ``reason`` states why the size cannot stay dynamic; it is empty if it can. ``other_at_one`` is the
    location where the calls at size 1 start to differ; None if they do not, or the module does not run at 1.
    ``without_effect`` are comparisons with another outcome but equal calls; ``needed`` those after which, at
    another size, the calls differed.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.other_at_one: Source | None = None
        self.without_effect: set[Record] = set()
        self.needed: set[Record] = set()


def agreement(
    symbol: Symbol,
    tape: Tape,
    rerun: Callable[[Symbol, int], Tape],
    elements: int,
    depends_on: Callable[[tuple[str, str]], bool] = lambda _: False,
) -> Agreement:
    """Runs the module by ``rerun`` at other sizes; the last one is much larger than the example if inputs are
    small.

    ``elements`` is the number of input elements; ``depends_on`` says whether a lost number changes the calls.
    """
    result, agreed, failure, agreeing = Agreement(), 0, "", dict[int, Tape]()
    if tape.unlike_plain:
        result.reason = tape.unlike_plain
        return result
    explained = ""
    for number in symbol.others():
        other, failure = _attempt(lambda number=number: rerun(symbol, number))  # type: ignore[misc]
        if other is None:
            continue
        result.reason = _unexplained(tape, other, result)
        if not result.reason and (found := _difference_of(tape, other)):
            explained = found
            continue
        agreeing[number] = other
        agreed += 1
        if result.reason or agreed == AGREEING:
            break
    if not agreed:
        result.reason = explained or f"the module fails at other sizes ({failure})"
    if not result.reason and any(guard not in result.without_effect for guard, _ in guards_of(tape)):
        untried = [number for number in symbol.neighbours() if number not in agreeing]
        result.reason = _at_other_sizes(symbol, tape, rerun, untried, result)
    if not result.reason and symbol.number < FAR and elements * FAR <= FAR_ELEMENTS * max(symbol.number, 1):
        far, _ = _attempt(lambda: rerun(symbol, FAR))
        result.reason = _unexplained(tape, far, result) if far is not None else ""
    if not result.reason:
        result.reason = _at_telling_sizes(symbol, tape, rerun, elements, agreeing, result)
    if not result.reason and tape.lost:
        from tmconvert.frontends.torch.tracing.sizes.lost_decisions import decided_by_lost

        result.reason = decided_by_lost(tape, agreeing, depends_on)
    if not result.reason and symbol.number != 1:
        one, _ = _attempt(lambda: rerun(symbol, 1))
        if one is not None and _compared(tape, one, result):
            result.other_at_one = first_difference(tape, one, "at another size")[1]
    result.without_effect -= result.needed
    return result


def _at_telling_sizes(
    symbol: Symbol,
    tape: Tape,
    rerun: Callable[[Symbol, int], Tape],
    elements: int,
    agreeing: Mapping[int, Tape],
    result: Agreement,
) -> str:
    """Returns the difference at a size for which the module may look without a comparison on the tape.

    A difference that such a comparison explains is a guard.
    """
    tried, (other, second) = {1, FAR, symbol.number, *agreeing}, next(iter(agreeing.items()))
    sizes = telling_sizes(symbol.number, tape.reads, other, second.reads)
    largest = FAR_ELEMENTS * max(symbol.number, 1) // max(elements, 1)
    calls = max(tape.calls, sum(1 for _ in _steps(tape.top)), 1)
    count = max(TELLING, min(TELLING_STEPS // calls, MOST_TELLING))
    if tape.calls:
        runs = (symbol.number, calls), (other, second.calls)
        sizes, largest = sizes_of_loops(sizes, largest, tape.reads, *runs)
    chosen: Iterable[int] = [size for size in sizes if size not in tried and size <= largest]
    if chosen:
        from tmconvert.frontends.torch.tracing.sizes.large_results import results_fit

        chosen = filter(results_fit(tape, symbol.number, second, other), chosen)
    return _at_other_sizes(symbol, tape, rerun, itertools.islice(chosen, count), result)


def _at_other_sizes(
    symbol: Symbol, tape: Tape, rerun: Callable[[Symbol, int], Tape], sizes: Iterable[int], result: Agreement
) -> str:
    """Runs the module at these sizes; returns what is different there, and no comparison explains."""
    for size in sizes:
        found, failure = _attempt(lambda size=size: rerun(symbol, size))  # type: ignore[misc]
        if isinstance(failure, Untraceable):  # it computes there, but what is not known
            return f"{failure} ({symbol.name} = {size})"
        if found is None:
            continue
        message, _, end = first_difference(tape, found, "at another size")
        reason = found.unlike_plain or message
        guards = unmatched_guards(tape, found, end) - result.without_effect
        if reason and not guards:
            return f"{reason} ({symbol.name} = {size})"
        if reason:
            result.needed |= guards
        else:  # what is compared for equality comes out otherwise at this size alone
            result.without_effect |= {guard for guard in guards if guard.args[0] in ("eq", "ne")}
    return ""


class Untraceable(str):
    """Why a run cannot be traced at a size that the module itself takes."""


def _attempt(run: Callable[[], Tape]) -> tuple[Tape | None, str]:
    """Returns the tape of a run; None, with the reason, where the module fails or cannot be traced."""
    try:
        return run(), ""
    except TmconvertError as error:
        return None, Untraceable(error.message)
    except (Exception, SystemExit) as error:  # the module's own, at a size that it does not take
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _compared(tape: Tape, other: Tape, result: Agreement) -> str:
    """Compares two tapes; if they agree, notes the comparisons of sizes with another outcome."""
    found = _difference_of(tape, other)
    if not found:
        result.without_effect |= unmatched_guards(tape, other)
    return found


def _unexplained(tape: Tape, other: Tape, result: Agreement) -> str:
    """Compares two tapes as ``_compared``; a comparison of another outcome is a guard."""
    message, _, end = first_difference(tape, other, "at another size")
    guards, found = unmatched_guards(tape, other, end), other.unlike_plain or message
    if not found:
        result.without_effect |= guards
    guards -= result.without_effect
    if found and guards and not other.unlike_plain:
        result.needed |= guards
        return ""
    return found


def _difference_of(tape: Tape, other: Tape) -> str:
    return other.unlike_plain or difference(tape, other)


def without(tape: Tape, comparisons: set[Record]) -> None:
    """Removes comparisons from the tape."""
    scopes = [tape.top, *(step for step in _steps(tape.top) if isinstance(step, Scope))]
    scopes += [body for step in _steps(tape.top) if isinstance(step, Record) for body in step.subgraphs]
    for scope in scopes:
        scope.items[:] = [item for item in scope.items if item not in comparisons]


@contextmanager
def without_guards(tape: Tape) -> Iterator[None]:
    """Removes all comparisons from the tape within the context."""
    steps = list(_steps(tape.top))
    scopes = [tape.top, *(step for step in steps if isinstance(step, Scope))]
    scopes += [body for step in steps if isinstance(step, Record) for body in step.subgraphs]
    items = [list(scope.items) for scope in scopes]
    without(tape, {step for step in steps if isinstance(step, Record) and _is_assumption(step)})
    try:
        yield
    finally:
        for scope, kept in zip(scopes, items, strict=True):
            scope.items[:] = kept


def first_other_line(first: Tape, second: Tape) -> Source | None:
    """Returns the line from which on two runs make other calls; None if they make the same."""
    message, source, _ = first_difference(first, second, "at another size")
    return source if message else None


def at_least(tape: Tape, tensor: Value, axis: int, least: int, source: Source) -> None:
    """Adds a guard to the tape: the trace is valid for sizes of at least ``least``; ``source`` is a line."""
    size = Value(tape.top, "size_out")
    taken = ("ge", size, least, True)
    tape.top.items += [
        Record("size", True, (tensor, axis), {}, size, source),
        Record("tm.assume", False, taken, {}, (), source),
    ]


def difference(first: Tape, second: Tape, when: str = "at another size") -> str:
    """Returns the first difference between two runs; empty if there is none.

    Another outcome of a comparison of sizes is a difference only if later calls differ; of data it always is.
    """
    return first_difference(first, second, when)[0]


def first_difference(first: Tape, second: Tape, when: str) -> tuple[str, Source, Record | Scope | None]:
    """Returns the first difference in words, the user's line, and the step of ``first`` that is another."""
    numbering = _Numbering(), _Numbering()
    of_data = when != "at another size"
    steps = [
        numbers.without_layouts(list(_steps(tape.top)) if of_data else _with_effect(tape))
        for tape, numbers in zip((first, second), numbering, strict=True)
    ]
    previous: Record | Scope | None = None
    for one, two in zip(*steps, strict=False):
        keys = [_key(step, numbers) for step, numbers in zip((one, two), numbering, strict=True)]
        if keys[0] != keys[1]:
            if of_data and _is_assumption(one) and _is_assumption(two):
                return "", Source(""), None
            place = one if _shown(one) else two
            why = ""
            if not of_data:
                from tmconvert.frontends.torch.tracing.sizes.plain_numbers import cause

                why = cause(one, two)
            return f"{_shown(place)} computes something else {when}{why}", place.source or Source(""), one
        previous = one if _shown(one) else previous
    results = [
        _key(Record("", False, (tape.top.result,), {}, (), Source("")), numbers)
        for tape, numbers in zip((first, second), numbering, strict=True)
    ]
    if len(steps[0]) == len(steps[1]) and results[0] == results[1]:
        return "", Source(""), None
    if previous is None:
        return f"the module takes another branch {when}", Source(""), None
    message = f"after {_shown(previous)} the module takes another branch {when}"
    return message, previous.source or Source(""), None


def _with_effect(tape: Tape) -> list[Record | Scope]:
    """Returns the steps without comparisons of sizes, and without computations that only those or Python use:
    of sizes, and of tensors that Python makes, such as ``float(torch.tensor(scale).log2())``.
    """
    steps, needed = list(_steps(tape.top)), _values((tape.top.result,))
    constant = results_of_constants(steps)
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
    pairs = zip(_steps(first.top), _steps(second.top), strict=False)
    outcomes = (
        (one, [(step.args[0], step.args[-1:]) for step in (one, two) if _is_assumption(step)])
        for one, two in pairs
    )
    taken = next((one for one, found in outcomes if _is_assumption(one) and found[1:] != found[:1]), None)
    return "" if taken is None else str(taken.source)


def _values(tree: object) -> set[Value]:
    return {leaf for leaf in leaves(tree) if isinstance(leaf, Value)}


def unmatched_guards(first: Tape, second: Tape, end: Record | Scope | None = None) -> set[Record]:
    """Returns the guards of ``first``, up to step ``end``, that ``second`` lacks or decides otherwise."""
    shown: list[dict[Record, str]] = []
    for tape in (first, second):
        numbers = _Numbering()
        for step in numbers.without_layouts(_with_effect(tape)):
            _key(step, numbers)
        guards = guards_of(tape)  # both sides of a branch may have the same one
        shown.append({step: repr(_calculated(step, numbers, known)) for step, known in guards})
    steps = list(_steps(first.top))
    if end in steps:  # a size that is read early may be used late
        end = next((step for step in steps[steps.index(end) :] if not _is_of_sizes(step)), None)
    before = set(itertools.takewhile(lambda step: step is not end, steps))  # all for results
    keys = {*shown[1].values()}
    found = {record for record, key in shown[0].items() if key not in keys}
    has_branches = any(isinstance(each, Record) and each.name in _BRANCHES for each in steps)
    return (found & before) or (found if has_branches else set())


def _is_of_sizes(step: Record | Scope) -> bool:
    return isinstance(step, Record) and all(v.shape is None and v.captured is None for v in step.results())


def guards_of(tape: Tape) -> Iterator[tuple[Record, dict[Value, Record]]]:
    """Returns the comparisons of sizes, with the computations by their results."""
    calculations: dict[Value, Record] = {}
    for step in _steps(tape.top):
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


def _steps(scope: Scope) -> Iterator[Record | Scope]:
    for item in scope.items:
        yield item
        for inner in [item] if isinstance(item, Scope) else item.subgraphs:
            yield from _steps(inner)
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
