"""Which sizes may differ from those of the example: the run is repeated at others, and must do the same.

A size that Python made a plain number (``int(n)``, ``range(n)``, a list of so many layers) shows as a
difference between the two tapes; so does a way that the module took for one size and not for another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ....errors import TmconvertError, UsageError
from ....ir.tree import map_leaves
from .tape import Record, Scope, Tape, Value

Axes = Mapping[str, Mapping[int, str]]
LEAST = 2  # the size of an axis of one element would be taken for broadcasting


@dataclass(frozen=True)
class Symbol:
    """A size that is to stay open: where it is, as (input, axis), and its number in the example."""

    name: str
    places: tuple[tuple[str, int], ...]
    number: int

    def others(self) -> Iterator[int]:
        """Other numbers to try; multiples first, since a model may need those."""
        yield from (2 * self.number, self.number + 1, self.number + 2)


def symbols_of(wanted: Axes, inputs: Mapping[str, torch.Tensor]) -> list[Symbol]:
    """The symbols of ``dynamic_shapes``. Raises UsageError TM6014 where they do not fit the inputs."""
    found: dict[str, list[tuple[str, int]]] = {}
    numbers: dict[str, int] = {}
    for name, axes in wanted.items():
        if name not in inputs:
            raise UsageError("TM6014", f"the model has no input {name!r}; it has {', '.join(inputs)}")
        shape = inputs[name].shape
        for axis, symbol in axes.items():
            if not -len(shape) <= axis < len(shape):
                raise UsageError("TM6014", f"the input {name!r} {list(shape)} has no axis {axis}")
            if numbers.setdefault(symbol, shape[axis]) != shape[axis]:
                raise UsageError("TM6014", f"{symbol} is {numbers[symbol]} and {shape[axis]} in the example")
            found.setdefault(symbol, []).append((name, axis % len(shape)))
    return [Symbol(name, tuple(places), numbers[name]) for name, places in found.items()]


def resized(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """The tensor with more or fewer slices along ``axis``, its own ones in turn."""
    if not tensor.shape[axis]:
        return tensor.new_zeros([*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]])
    return tensor.index_select(axis, torch.arange(size) % tensor.shape[axis])


def frozen_by(symbol: Symbol, tape: Tape, rerun: Callable[[Symbol, int], Tape]) -> str:
    """Why the size cannot stay open; empty when it can. ``rerun`` runs the module at another number."""
    failure = ""
    for number in symbol.others():
        try:
            other = rerun(symbol, number)
        except TmconvertError as error:
            failure = error.message
            continue
        except (Exception, SystemExit) as error:  # the module's own, at a size that it does not take
            failure = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            continue
        return difference(tape, other)
    return f"the module fails at other sizes ({failure})"


def decided_by_data(tape: Tape, rerun: Callable[[Callable[[torch.Tensor], torch.Tensor]], Tape]) -> str:
    """Where Python made a plain number of a size that only the data tells; empty where none was found.

    ``rerun`` runs the module on inputs of other data. A comparison that comes out otherwise is no fault: it
    is on the tape, and reported.
    """
    for other in (_negated, _halved):
        try:
            second = rerun(other)
        except (Exception, SystemExit):  # data that the module does not take says nothing
            continue
        found = difference(tape, second, "on other data")
        if found:
            return found
    return ""


def _negated(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype == torch.bool:
        return ~tensor
    return -tensor if tensor.is_floating_point() else tensor.flip(list(range(tensor.dim())))


def _halved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor / 2 if tensor.is_floating_point() else tensor


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """Other data of the same signs, each element by another factor; integers in another order."""
    if not tensor.is_floating_point():
        return tensor.flip(list(range(tensor.dim())))
    factors = torch.linspace(0.5, 0.9, max(tensor.numel(), 1))[: tensor.numel()]
    return tensor * factors.reshape(tensor.shape).to(tensor.dtype)


def difference(first: Tape, second: Tape, when: str = "at another size") -> str:
    """The first place where two runs did different things; empty where they did the same."""
    numbering: tuple[dict[Value, int], dict[Value, int]] = ({}, {})
    steps = [list(_steps(tape.top)) for tape in (first, second)]
    previous = ""
    for one, two in zip(*steps, strict=False):
        keys = [_key(step, numbers) for step, numbers in zip((one, two), numbering, strict=True)]
        if keys[0] != keys[1]:
            if when != "at another size" and _is_assumption(one) and _is_assumption(two):
                return ""
            return f"{_shown(one) or _shown(two)} does something else {when}"
        previous = _shown(one) or previous
    if len(steps[0]) == len(steps[1]):
        return ""
    return f"after {previous} the module takes another way {when}"


def _is_assumption(step: Record | Scope) -> bool:
    return isinstance(step, Record) and step.name == "tm.assume"


def _steps(scope: Scope) -> Iterator[Record | Scope]:
    for item in scope.items:
        yield item
        for inner in [item] if isinstance(item, Scope) else item.bodies:
            yield from _steps(inner)


def _key(step: Record | Scope, numbers: dict[Value, int]) -> Any:
    """The step without what belongs to one run alone."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Value):
            if value.captured is not None:
                return _Data(value.captured)
            return numbers.setdefault(value, len(numbers))
        if isinstance(value, Scope):
            return value.path
        if isinstance(value, float) and math.isnan(value):
            return "nan"
        return (type(value).__name__, value)

    name = step.name if isinstance(step, Record) else step.path
    result = step.result if isinstance(step, Record) else ()
    return (name, *map_leaves(leaf, (step.args, step.kwargs, result)))


class _Data:
    """A captured tensor: equal to itself, and to one of the same numbers."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Data):
            return False
        one, two = self.tensor, other.tensor
        return one is two or (one.dtype == two.dtype and one.shape == two.shape and torch.equal(one, two))

    __hash__ = None  # type: ignore[assignment]


def _shown(step: Record | Scope) -> str:
    if isinstance(step, Scope):
        return f"{step.source} (the call of {step.path})" if step.source else ""
    return f"{step.source} ({step.name})"


def least(symbol: Symbol) -> int:
    """The number of elements that a run is made with where the size stays open."""
    return max(symbol.number, LEAST)
