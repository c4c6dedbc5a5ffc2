"""Validates dynamic shapes by re-tracing: the module is run again at other sizes, and the tapes are compared.

A size that Python converted to a plain number (``int(n)``, ``range(n)``, a list of ``n`` layers) causes a
difference between the two tapes, as does a branch that the module takes at one size and not at another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.tape import Record, Tape
from tmconvert.frontends.torch.tracing.sizes.code_constants import sizes_of_loops, telling_sizes
from tmconvert.frontends.torch.tracing.sizes.integers import CONDITION
from tmconvert.ir.symbolic.open_sizes import NamedAxis, example_sizes

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.sizes.differences import Comparison

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
    another size, the calls differed. ``lost`` are the places that decide by a number that is lost.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.other_at_one: Source | None = None
        self.without_effect: set[Record] = set()
        self.needed: set[Record] = set()
        self.lost: list[tuple[str, str]] = []


Rerun = Callable[[Mapping[str, int]], "Comparison"]


def agreements(
    symbols: Sequence[Symbol],
    tape: Tape,
    rerun: Rerun,
    elements: int,
    depends_on: Callable[[tuple[str, str]], bool] = lambda _: False,
) -> dict[str, Agreement]:
    """Runs the module by ``rerun`` at other sizes, and returns by symbol whether it does the same there.

    ``elements`` is the number of input elements; ``depends_on`` says whether a lost number changes the calls.
    Each symbol has runs of its own near the size of the example. At the further sizes, where the module is
    less likely to do something else, one run has those of all symbols, unless it differs.
    """
    found = {each: Agreement() for each in symbols}
    near = {each: _at_near_sizes(each, tape, rerun, result) for each, result in found.items()}
    agreed = [each for each, result in found.items() if not result.reason]
    far = {each: _far_sizes(each, elements) for each in agreed}
    telling = {each: list(_telling_sizes(each, tape, elements, near[each])) for each in agreed}
    if len(agreed) > 1 and not tape.calls:  # rounds of several loops would multiply
        without_effect = set[Record].intersection(*(found[each].without_effect for each in agreed))
        _remove_alike(far, rerun, elements, without_effect)
        _remove_alike(telling, rerun, elements, without_effect)
    for symbol in agreed:
        result = found[symbol]
        for number in far[symbol]:
            other, _ = _attempt(lambda: rerun({symbol.name: number}))  # noqa: B023
            result.reason = _unexplained(other, result) if other is not None else ""
        if not result.reason:
            result.reason = _at_other_sizes(symbol, rerun, telling[symbol], result)
        if not result.reason and tape.lost:
            from tmconvert.frontends.torch.tracing.sizes.lost_decisions import LOST_NUMBER, decided_by_lost

            result.lost = decided_by_lost(tape, near[symbol], depends_on)
            result.reason = LOST_NUMBER.format(result.lost[0][0]) if result.lost else ""
        if not result.reason and symbol.number != 1:
            one, _ = _attempt(lambda: rerun({symbol.name: 1}))  # noqa: B023
            if one is not None and one.reason:
                result.other_at_one = one.source
            elif one is not None:
                result.without_effect |= one.guards
    for result in found.values():
        result.without_effect -= result.needed
        if result.reason:  # which these may explain
            lost = [place for place in tape.lost if place[1] == CONDITION and depends_on(place)]
            result.lost = result.lost or lost
    return {symbol.name: result for symbol, result in found.items()}


def _at_near_sizes(symbol: Symbol, tape: Tape, rerun: Rerun, result: Agreement) -> dict[int, Tape]:
    """Runs the module at sizes near that of the example; returns the tapes of the runs that do the same."""
    from tmconvert.frontends.torch.tracing.sizes.differences import guards_of

    agreed, failure, agreeing, explained = 0, "", dict[int, Tape](), ""
    result.reason = tape.unlike_plain
    for number in () if result.reason else symbol.others():
        other, failure = _attempt(lambda number=number: rerun({symbol.name: number}))  # type: ignore[misc]
        if other is None:
            continue
        result.reason = _unexplained(other, result)
        if not result.reason and other.reason:
            explained = other.reason
            continue
        agreeing[number] = other.tape
        agreed += 1
        if result.reason or agreed == AGREEING:
            break
    if not agreed and not result.reason:
        result.reason = explained or f"the module fails at other sizes ({failure})"
    if not result.reason and any(guard not in result.without_effect for guard, _ in guards_of(tape)):
        untried = [number for number in symbol.neighbours() if number not in agreeing]
        result.reason = _at_other_sizes(symbol, rerun, untried, result)
    return agreeing


def _far_sizes(symbol: Symbol, elements: int) -> list[int]:
    """Returns a size that is much larger than the example's, if inputs are small."""
    is_small = symbol.number < FAR and elements * FAR <= FAR_ELEMENTS * max(symbol.number, 1)
    return [FAR] if is_small else []


def _telling_sizes(symbol: Symbol, tape: Tape, elements: int, agreeing: Mapping[int, Tape]) -> Iterator[int]:
    """Yields the sizes for which the module may look without a comparison on the tape."""
    tried, (other, second) = {1, FAR, symbol.number, *agreeing}, next(iter(agreeing.items()))
    sizes = telling_sizes(symbol.number, tape.reads, other, second.reads)
    largest = FAR_ELEMENTS * max(symbol.number, 1) // max(elements, 1)
    calls = max(tape.calls, sum(1 for _ in tape.top.records()), 1)
    count = max(TELLING, min(TELLING_STEPS // calls, MOST_TELLING))
    if tape.calls:
        runs = (symbol.number, calls), (other, second.calls)
        sizes, largest = sizes_of_loops(sizes, largest, tape.reads, *runs)
    chosen: Iterable[int] = [size for size in sizes if size not in tried and size <= largest]
    if chosen:
        from tmconvert.frontends.torch.tracing.sizes.large_results import results_fit

        chosen = filter(results_fit(tape, symbol.number, second, other), chosen)
    return itertools.islice(chosen, count)


def _remove_alike(
    sizes: Mapping[Symbol, list[int]], rerun: Rerun, elements: int, without_effect: set[Record]
) -> None:
    """Removes the sizes at which the module does the same in one run for all symbols.

    From the first ones on that differ, or at which the module fails, the symbols need runs of their own.
    """
    for numbers in list(zip(*sizes.values(), strict=False)):
        together = dict(zip(sizes, numbers, strict=True))
        scale = math.prod(number / max(symbol.number, 1) for symbol, number in together.items())
        if elements * scale > FAR_ELEMENTS:
            break
        other, _ = _attempt(lambda: rerun({symbol.name: n for symbol, n in together.items()}))  # noqa: B023
        if other is None or other.reason or other.guards - without_effect:
            break
        for symbol, number in together.items():
            sizes[symbol].remove(number)


def _at_other_sizes(symbol: Symbol, rerun: Rerun, sizes: Iterable[int], result: Agreement) -> str:
    """Runs the module at these sizes; returns what is different there, and no comparison explains.

    A difference that a comparison explains is a guard.
    """
    for size in sizes:
        found, failure = _attempt(lambda size=size: rerun({symbol.name: size}))  # type: ignore[misc]
        if isinstance(failure, Untraceable):  # it computes there, but what is not known
            return f"{failure} ({symbol.name} = {size})"
        if found is None:
            continue
        guards = found.guards - result.without_effect
        if found.reason and not guards:
            return f"{found.reason} ({symbol.name} = {size})"
        if found.reason:
            result.needed |= guards
        else:  # what is compared for equality comes out otherwise at this size alone
            result.without_effect |= {guard for guard in guards if guard.args[0] in ("eq", "ne")}
    return ""


class Untraceable(str):
    """Why a run cannot be traced at a size that the module itself takes."""


def _attempt(run: Callable[[], Comparison]) -> tuple[Comparison | None, str]:
    """Returns the comparison of a run; None, with the reason, where the module fails or cannot be traced."""
    try:
        return run(), ""
    except TmconvertError as error:
        return None, Untraceable(error.message)
    except (Exception, SystemExit) as error:  # the module's own, at a size that it does not take
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _unexplained(other: Comparison, result: Agreement) -> str:
    """Returns the difference that no comparison of another outcome explains; such a comparison is a guard.

    If the runs agree, notes the comparisons of sizes with another outcome.
    """
    if not other.reason:
        result.without_effect |= other.guards
    guards = other.guards - result.without_effect
    if other.reason and guards and not other.tape.unlike_plain:
        result.needed |= guards
        return ""
    return other.reason


def keep_guards(tape: Tape, symbols: Sequence[Symbol], checks: Mapping[str, Agreement]) -> None:
    """Keeps those comparisons of dynamic sizes on the tape that become guards."""
    if not checks:
        return
    from tmconvert.frontends.torch.tracing.sizes.differences import at_least, without

    values = dict(tape.top.formal_inputs())
    for symbol in symbols:
        check = checks[symbol.name]
        if not check.reason:
            without(tape, check.without_effect)
        if check.reason or check.other_at_one is None:
            continue
        if symbol.place is None:
            check.reason = f"{check.other_at_one} does something else at a size of 1"
        else:
            at_least(tape, values[symbol.place.input], symbol.place.axis, 2, check.other_at_one)
