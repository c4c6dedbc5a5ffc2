"""Conditions of decisions on open sizes: the size that is 1 where a comparison of sizes is true, else 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.control_flow.decisions import answer
from tmconvert.frontends.torch.tracing.data.integers import read_tensor
from tmconvert.frontends.torch.tracing.sizes.integers import TracedFloat, TracedInt
from tmconvert.frontends.torch.tracing.sizes.replaced_functions import REPLACED

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

MOST_DENOMINATOR = 4096
_SMALLEST, _LARGEST = REPLACED["min"], REPLACED["max"]
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_CHOICES: dict[str, Callable[[Any, Any], Any]] = {
    "gt": lambda a, b: _SMALLEST(_LARGEST(a - b, 0), 1),
    "ge": lambda a, b: _SMALLEST(_LARGEST(a - b + 1, 0), 1),
    "lt": lambda a, b: _SMALLEST(_LARGEST(b - a, 0), 1),
    "le": lambda a, b: _SMALLEST(_LARGEST(b - a + 1, 0), 1),
    "ne": lambda a, b: _SMALLEST(_LARGEST(a - b, b - a), 1),
    "eq": lambda a, b: 1 - _SMALLEST(_LARGEST(a - b, b - a), 1),
}


def answer_sizes(
    recorder: Recorder, name: str, operands: tuple[Any, Any], outcome: bool, place: Source
) -> bool | None:
    """Returns the answer of a comparison of sizes that is a decision; None where it cannot be one.

    One of a number that Python read of a tensor is a decision on data.
    """
    tensors = [read_tensor(recorder, each) for each in operands]
    if any(each is not None for each in tensors):
        given = [two if one is None else one for one, two in zip(tensors, operands, strict=True)]
        function = getattr(torch, name)
        if not isinstance(given[0], torch.Tensor):
            given, function = given[::-1], getattr(torch, _SWAPPED.get(name, name))
        with torch._C.DisableTorchFunction():
            condition = recorder.called(function, tuple(given), {})
            return answer(recorder, "__bool__", ((condition,), {}), outcome, place)
    choice = _choice(name, *operands)
    if not isinstance(choice, TracedInt):
        return None
    with torch._C.DisableTorchFunction():
        number = recorder.called(torch.scalar_tensor, (choice,), {"dtype": torch.int64})
        condition = recorder.called(torch.ne, (number, 0), {})
        return answer(recorder, "__bool__", ((condition,), {}), outcome, place, choice=choice)


def _choice(name: str, left: Any, right: Any) -> Any:
    """Returns the size that is 1 where a comparison of integers is true, else 0."""
    one, other = _fraction(left), _fraction(right)
    if one is None or other is None:
        return None
    (left, below), (right, under) = one, other
    if any(isinstance(each, TracedInt) or each != 1 for each in (below, under)):
        left, right = left * under, right * below
    is_remainder = (
        isinstance(left, TracedInt)
        and left.origin[0] == "mod"
        and type(left.origin[2]) is type(right) is int
        and left.origin[2] == 2
    )
    if is_remainder and (name, right) in (("ne", 0), ("eq", 1), ("gt", 0)):
        return left
    if is_remainder and (name, right) in (("eq", 0), ("ne", 1)):
        return 1 - left
    is_one_size = not (isinstance(left, TracedInt) and isinstance(right, TracedInt))
    if name in ("eq", "ne") and is_one_size and not (isinstance(left, TracedInt) and left.origin[0] == "mod"):
        return None  # one size among all others stays a guard
    return _CHOICES[name](left, right)


def _fraction(number: Any) -> tuple[Any, Any] | None:
    """Returns numerator and positive denominator of a size, a quotient of two, or a short fraction.

    Python's quotient of two sizes is rounded, but on the same side of a fraction with a small denominator.
    """
    if isinstance(number, TracedFloat):
        kind, *parts = number.origin
        is_positive = len(parts) == 2 and (
            parts[1].origin[0] == "size" if isinstance(parts[1], TracedInt) else parts[1] > 0
        )
        is_exact = kind == "truediv" and all(isinstance(each, int) for each in parts)
        return (parts[0], parts[1]) if is_exact and is_positive else None
    if isinstance(number, int):
        return number, 1
    if not isinstance(number, float) or not math.isfinite(number):
        return None
    found = Fraction(number)
    return (found.numerator, found.denominator) if found.denominator <= MOST_DENOMINATOR else None
