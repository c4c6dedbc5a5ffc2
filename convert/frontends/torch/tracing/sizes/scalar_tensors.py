"""Tensors of one number that are computed of sizes alone: ``torch.ceil(torch.as_tensor(n / 2)).long()``.

Such a tensor is a bound of a slice or an amount of padding, or ``item()`` converts it to a number. The traced
number that it holds is computed beside it by Python's integers, so that it is a size there. Buffers of one
integer, such as the stride of a layer, take part.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tmconvert.frontends.torch.names import Name, aten_name
from tmconvert.frontends.torch.tracing.data.integers import IntTaken, file_of_caller
from tmconvert.frontends.torch.tracing.recording.op_traits import SIZED
from tmconvert.frontends.torch.tracing.recording.tape import Value
from tmconvert.frontends.torch.tracing.sizes.integers import (
    NUMBERS,
    TRACED,
    TracedFloat,
    TracedInt,
    in_float32,
    in_single,
    truncated,
    untraced,
)
from tmconvert.ir.tree import leaves, map_leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

INDEXED = frozenset(("getitem", "setitem"))
READS = frozenset(("item", "tolist", "_local_scalar_dense"))
EXACT = 1 << 24  # integers below have no rounding error in float32
DENOMINATOR = 1 << 16  # of the fraction that a float stands for
INTEGERS = (torch.int64, torch.int32)
CREATIONS = frozenset(("tensor", "as_tensor", "scalar_tensor", "asarray"))
SAME = frozenset(("clone", "detach", "contiguous", "cpu", "to", "long", "int", "float", "double", "type"))
_NAMES: dict[str, tuple[str, ...]] = {
    "add": ("add", "radd"),
    "sub": ("sub", "rsub", "subtract"),
    "mul": ("mul", "rmul", "multiply"),
    "truediv": ("truediv", "rtruediv", "div", "divide"),
    "floordiv": ("floordiv", "rfloordiv", "floor_divide"),
    "mod": ("mod", "rmod", "remainder"),
}
ARITHMETIC = {name: getattr(operator, kind) for kind, names in _NAMES.items() for name in names}


class SizeTensors:
    """The traced numbers that tensors of a run hold, by the Values of these tensors."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._held: dict[Value, Any] = {}
        self._filled: dict[Value, Any] = {}  # the number that all elements of a tensor have

    def __bool__(self) -> bool:
        return bool(self._held)

    def note(self, name: Name, args: tuple[Any, ...], kwargs: dict[str, Any], tensor: torch.Tensor) -> None:
        """Notes the number of the tensor of one element that a call made, if it is one of sizes."""
        own = _own(name)
        if own in CREATIONS and args and isinstance(args[0], TRACED):
            held: Any = args[0]
        elif own == "getitem" and self._filled:
            held = self._filled.get(self._recorder.value_of(args[0]))
        elif own in ARITHMETIC or own in ("ceil", "floor") or own in SAME:
            if not any(isinstance(leaf, TRACED) or self._known(leaf) is not None for leaf in leaves(args)):
                return
            held = self._computed(own, args, kwargs, tensor.dtype)
        else:
            return
        held = _as_type(held, tensor.dtype)
        if isinstance(held, TRACED) and self._recorder.run(tensor.item) == untraced(held):
            self._held[self._recorder.value_of(tensor)] = held

    def fill(self, tensor: torch.Tensor, number: Any) -> None:
        """Notes the number that all elements of a tensor of integers have."""
        if isinstance(number, TracedInt):
            self._filled[self._recorder.value_of(tensor)] = number

    def _known(self, leaf: object) -> Any:
        is_scalar = bool(self._held) and isinstance(leaf, torch.Tensor) and not leaf.dim()
        return self._held.get(self._recorder.value_of(leaf)) if is_scalar else None

    def _operand(self, leaf: Any) -> Any:
        """Returns the number of an operand, also of a constant of one integer."""
        if not isinstance(leaf, torch.Tensor):
            return leaf if isinstance(leaf, NUMBERS) and not isinstance(leaf, bool) else None
        held = self._known(leaf)
        if held is not None or leaf.dim() or leaf.dtype not in INTEGERS:
            return held
        is_constant = self._recorder.value_of(leaf).captured is not None
        return self._recorder.run(leaf.item) if is_constant else None

    def _computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> Any:
        first = self._operand(args[0])
        if first is None:
            return None
        if name in ("ceil", "floor"):
            return _rounded(first, name)
        if name in SAME:
            return first
        second = self._operand(args[1]) if len(args) == 2 and not kwargs else None
        if second is None:
            return None
        is_reflected = name in ("rsub", "rtruediv", "rfloordiv", "rmod")
        pair = (second, first) if is_reflected else (first, second)
        if dtype != torch.float32:
            return ARITHMETIC[name](*pair)
        kind = next(kind for kind, names in _NAMES.items() if name in names)
        return None if kind in ("floordiv", "mod") else in_single(kind, *pair)

    def in_call(self, name: Name, args: Any) -> Any:
        """Returns the arguments of a call with sizes in place of tensors that are bounds or amounts, and with
        arrays that are indices as tensors.
        """
        own = _own(name)
        if own in INDEXED:
            index = args[1]
            changed = tuple(map(self._part, index)) if isinstance(index, tuple) else self._part(index)
            return (args[0], changed, *args[2:])
        return map_leaves(self._size, args) if self and own in SIZED else args

    def _part(self, index: Any) -> Any:
        if isinstance(index, np.ndarray) and index.ndim and index.dtype != object:
            return torch.as_tensor(index)
        return map_leaves(self._size, index) if isinstance(index, slice) and self else index

    def _size(self, leaf: Any) -> Any:
        held = self._known(leaf)
        return held if isinstance(held, TracedInt) and leaf.dtype in INTEGERS else leaf

    def read(self, name: str, tensor: Any) -> Any:
        """Returns what ``item()`` and ``tolist()`` return for the tensor; None where its number is not known.

        Raises IntTaken where ``int`` converts it.
        """
        held = self._known(tensor)
        if held is None or name not in (*READS, "__int__"):
            return None
        if name == "__int__":
            file = file_of_caller()
            if file is not None:
                raise IntTaken(file)
            return None
        if tensor.is_floating_point():
            return TracedFloat(float(untraced(held)), ("mul", held, 1.0), held.note)
        return held if isinstance(held, TracedInt) else None


def _own(name: Name) -> str:
    own = aten_name(name.text, name.is_method).strip("_").rpartition(":")[2]
    return own.removeprefix("torch.").partition(".")[0]


def _as_type(number: Any, dtype: torch.dtype) -> Any:
    """Returns the number in a tensor of ``dtype``; None where it is not followed."""
    if dtype in INTEGERS:
        return _rounded(number, "truncated") if isinstance(number, TRACED) else None
    if dtype == torch.float32:
        return None if number is None else in_float32(number)
    return number if dtype == torch.float64 else None


def _rounded(number: Any, kind: str) -> Any:
    """Returns a float as a size; below 2**24, a guard, most roundings to float32 do not matter."""
    if not isinstance(number, TracedFloat):
        return number
    from tmconvert.ir.symbolic.rounded import rounds_like_integers

    fraction, steps, roundings = _fraction(number), *_steps(number)
    if roundings and fraction is not None and rounds_like_integers(steps):
        above, below = fraction
        if above >= 0 and above * roundings < EXACT:
            return above if below == 1 else (above + (below - 1 if kind == "ceil" else 0)) // below
    round_: Callable[[Any], Any] = {"ceil": math.ceil, "floor": math.floor}.get(kind, truncated)
    return round_(number)


def _steps(number: Any) -> tuple[Any, int]:
    """Returns the computation of a number in float64, and how often float32 rounds it."""
    from tmconvert.ir.symbolic.rounded import Steps

    if not isinstance(number, TracedFloat):
        return number, 0
    parts = [_steps(each) for each in number.origin[1:]]
    counts = sum(count for _, count in parts)
    if number.origin[0] == "float32":
        return parts[0][0], counts + 1
    return Steps(number.origin[0], *(steps for steps, _ in parts)), counts


def _fraction(number: Any) -> tuple[Any, int] | None:
    """Returns a size or a fraction of one as its numerator and denominator; None for other numbers."""
    if isinstance(number, int):
        return number, 1
    if not isinstance(number, TRACED):
        exact = Fraction(number).limit_denominator(DENOMINATOR)
        return (exact.numerator, exact.denominator) if float(exact) == number else None
    kind, *operands = number.origin
    if kind == "float32":
        return _fraction(operands[0])
    if kind not in ("add", "sub", "mul", "truediv"):
        return None
    parts = [_fraction(each) for each in operands]
    if any(part is None for part in parts):
        return None
    (one, under), (two, divisor) = (part for part in parts if part is not None)
    if kind in ("add", "sub"):
        compute: Callable[[Any, Any], Any] = getattr(operator, kind)
        return compute(one * divisor, two * under), under * divisor
    if kind == "truediv":
        two, divisor = divisor, two
    if type(divisor) is not int or divisor <= 0:
        return None
    return one * two, under * divisor
