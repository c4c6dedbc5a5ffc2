"""Counters of loops over open sizes: ``for t in range(n): if t % 2 == 0: ...``.

Python's counter is a plain number, so that rounds with other calls are no loop. Where that is the only way,
the module runs with counters that are followed: a comparison of one is a decision, and each round has both
of its sides.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.control_flow.decisions import answer

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

Step = tuple[str, int]  # a function of torch, and its second operand


class Counted(int):
    """A counter, or an integer that Python computes of it: the functions ``steps`` of ``start``.

    ``note`` is called for each comparison with (name, left, right, outcome), and returns the outcome.
    """

    start: int
    steps: tuple[Step, ...]
    note: Callable[[str, Any, Any, bool], bool]

    def __new__(cls, number: int, start: int, steps: tuple[Step, ...], note: Callable[..., bool]) -> Counted:
        self = super().__new__(cls, number)
        self.start, self.steps, self.note = start, steps, note
        return self

    __hash__ = int.__hash__

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __reduce__(self) -> Any:  # what is copied or pickled is a plain number
        return int, (int.__int__(self),)

    def __neg__(self) -> Any:
        return self * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other if type(other) is int else NotImplemented


def _arithmetic(name: str, function: str) -> Callable[[Any, Any], Any]:
    compute = getattr(operator, name)

    def method(self: Counted, other: Any) -> Any:
        if type(other) is not int:
            plain = getattr(int, f"__{name}__")
            return plain(self, int.__int__(other)) if isinstance(other, Counted) else NotImplemented
        number = compute(int.__int__(self), other)
        return Counted(number, self.start, (*self.steps, (function, other)), self.note)

    return method


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    compute = getattr(operator, name)

    def method(self: Counted, other: Any) -> Any:
        if type(other) not in (int, Counted):
            return NotImplemented
        outcome = compute(int.__int__(self), int.__int__(other))
        return self.note(name, self, int.__int__(other), outcome)

    return method


_FUNCTIONS = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "floor_divide", "mod": "remainder"}
for _name, _function in _FUNCTIONS.items():
    setattr(Counted, f"__{_name}__", _arithmetic(_name, _function))
for _name in ("add", "mul"):
    setattr(Counted, f"__r{_name}__", _arithmetic(_name, _name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Counted, f"__{_name}__", _comparison(_name))


class CountedRange:
    """A range whose numbers are counters; all else is as with ``range``."""

    def __init__(self, plain: range, note: Callable[..., bool]) -> None:
        self._plain, self._note = plain, note

    def _counted(self, number: int) -> Counted:
        return Counted(number, number, (), self._note)

    def __iter__(self) -> Iterator[Counted]:
        return map(self._counted, self._plain)

    def __reversed__(self) -> Iterator[Counted]:
        return map(self._counted, reversed(self._plain))

    def __len__(self) -> int:
        return len(self._plain)

    def __getitem__(self, index: Any) -> Any:
        found = self._plain[index]
        return CountedRange(found, self._note) if isinstance(found, builtins.range) else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def answer_counter(
    recorder: Recorder, name: str, left: Counted, right: int, outcome: bool, place: Source
) -> bool:
    """Returns the answer of a comparison of a counter, which is a decision where it can be one."""
    with torch._C.DisableTorchFunction():
        number = recorder.called(torch.scalar_tensor, (left.start,), {"dtype": torch.int64})
        for function, operand in left.steps:
            number = recorder.called(getattr(torch, function), (number, operand), {})
        condition = recorder.called(getattr(torch, name), (number, right), {})
        found = answer(recorder, "__bool__", ((condition,), {}), outcome, place)
    return outcome if found is None else found
