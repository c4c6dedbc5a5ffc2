"""Tensors of one number that are computed of sizes alone: ``torch.ceil(torch.as_tensor(n / 2)).long()``.

Such a tensor is a bound of a slice, or ``item()`` converts it to a number. The traced number that it holds is
computed beside it by Python's integers, so that it is a size there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from tmconvert.frontends.torch.names import Name, aten_name
from tmconvert.frontends.torch.tracing.data_numbers import IntTaken, file_of_caller
from tmconvert.frontends.torch.tracing.sizes import NUMBERS, TRACED, TracedInt
from tmconvert.frontends.torch.tracing.tape import Value
from tmconvert.ir.tree import leaves

INDEXED = frozenset(("__getitem__", "__setitem__"))
READS = frozenset(("item", "tolist", "_local_scalar_dense"))
EXACT = {torch.float32: 1 << 24, torch.float64: 1 << 53}  # integers below have no rounding error
DENOMINATOR = 1 << 16  # of the fraction that a float stands for
INTEGERS = (torch.int64, torch.int32)
CREATIONS = frozenset(("tensor", "as_tensor", "scalar_tensor", "asarray"))
SAME = frozenset(("clone", "detach", "contiguous", "cpu", "to", "long", "int", "float", "double", "type"))
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "truediv": operator.truediv,
}


class SizeTensors:
    """The traced numbers that tensors of a run hold, by the Values of these tensors."""

    def __init__(self) -> None:
        self._numbers: dict[Value, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def of(self, value: object) -> Any:
        """Returns the traced number of a tensor's Value; None where it is not known."""
        return self._numbers.get(value) if isinstance(value, Value) else None

    def note(
        self, name: Name, args: tuple[Any, ...], recorded: tuple[Any, ...], made: tuple[object, Any]
    ) -> None:
        """Notes the number of the tensor that a call made. ``recorded`` are the arguments as Values, ``made``
        is the tensor and its Value.
        """
        tensor, value = made
        if not isinstance(tensor, torch.Tensor) or tensor.dim() or not isinstance(value, Value) or not args:
            return
        own = aten_name(name.text, name.is_method).strip("_").rpartition(":")[2].rpartition(".")[2]
        if own in CREATIONS and isinstance(args[0], TRACED):
            number = args[0]
        elif self._numbers and any(self.of(each) is not None for each in leaves(recorded)):
            held = [
                self.of(two) if isinstance(one, torch.Tensor) else one
                for one, two in zip(args, recorded, strict=True)
            ]
            number = _computed(own, held, args[0], tensor.dtype)
        else:
            return
        if isinstance(number, TRACED):
            self._numbers[value] = number

    def in_index(self, args: Any, value_of: Callable[[Any], Any]) -> Any:
        """Returns the arguments of an index with arrays as tensors, and with sizes as bounds of slices."""

        def bound(leaf: Any) -> Any:
            number = self.of(value_of(leaf)) if isinstance(leaf, torch.Tensor) and not leaf.dim() else None
            return number if isinstance(number, TracedInt) and leaf.dtype in INTEGERS else leaf

        def part(index: Any) -> Any:
            if isinstance(index, np.ndarray) and index.ndim and index.dtype != object:
                return torch.as_tensor(index)
            if isinstance(index, slice) and self:
                return slice(*(map(bound, (index.start, index.stop, index.step))))
            return index

        index = args[1]
        changed = tuple(map(part, index)) if isinstance(index, tuple) else part(index)
        return (args[0], changed, *args[2:])

    def read(self, name: str, tensor: Any, value: object) -> Any:
        """Returns what ``item()`` and ``tolist()`` return for the tensor; None where its number is not known.

        Raises IntTaken where ``int`` converts it.
        """
        number = self.of(value)
        if number is not None and name == "__int__":
            file = file_of_caller()
            if file is not None:
                raise IntTaken(file)
        if name not in READS:
            return None
        if number is None or (isinstance(number, TracedInt) and not tensor.is_floating_point()):
            return number
        return number * 1.0 if tensor.is_floating_point() else None


def _computed(name: str, held: list[Any], operand: Any, dtype: torch.dtype) -> Any:
    """Returns the number of the result of a call whose tensors hold ``held``; None where it is not exact."""
    number = held[0]
    if name in ("ceil", "floor"):
        return _rounded(number, name == "ceil", operand.dtype)
    if name in SAME and (dtype in EXACT or dtype in INTEGERS):
        if dtype in INTEGERS and not isinstance(number, TracedInt):
            return _rounded(number, False, operand.dtype)
        return number
    if name in ARITHMETIC and len(held) == 2 and all(isinstance(each, NUMBERS) for each in held):
        result = ARITHMETIC[name](*held)
        return result if isinstance(result, TracedInt) or dtype.is_floating_point else None
    return None


def _rounded(number: Any, up: bool, dtype: torch.dtype) -> Any:
    """Returns a float as a size, rounded; a guard keeps it where the element type has no rounding error."""
    fraction, limit = _fraction(number), EXACT.get(dtype)
    if fraction is None or limit is None:
        return None
    above, below = fraction
    if not above >= 0 or not above < limit:
        return None
    return above if below == 1 else (above + (below - 1 if up else 0)) // below


def _fraction(number: Any) -> tuple[Any, int] | None:
    """Returns a size or a fraction of one as its numerator and denominator; None for other numbers."""
    if isinstance(number, int):
        return number, 1
    if not isinstance(number, TRACED):
        exact = Fraction(number).limit_denominator(DENOMINATOR)
        return (exact.numerator, exact.denominator) if float(exact) == number else None
    kind, *operands = number.origin
    if kind not in ("add", "sub", "mul", "truediv"):
        return None
    parts = [_fraction(each) for each in operands]
    if any(part is None for part in parts):
        return None
    (one, under), (two, divisor) = (part for part in parts if part is not None)
    if kind in ("add", "sub"):
        return getattr(operator, kind)(one * divisor, two * under), under * divisor
    if kind == "truediv":
        two, divisor = divisor, two
    if type(divisor) is not int or divisor <= 0:
        return None
    return one * two, under * divisor
