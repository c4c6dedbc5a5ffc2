"""Tensors whose elements are one number, of sizes or constant: ``torch.ceil(torch.as_tensor(n / 2)).long()``,
``torch.full((batch,), n).max()``, ``torch.ones(batch, n) > 0``.

Such a tensor is a bound of a slice or an amount of padding, ``item()`` converts it to a number, or Python
branches on it. Its number is also computed with Python's traced integers, and is a size for Python.
Buffers of one integer, such as the stride of a layer, take part.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

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
_SAME = "clone detach contiguous cpu to long int float double type type_as bool"
SAME = frozenset(_SAME.split())
_NAMES: dict[str, tuple[str, ...]] = {
    "add": ("add", "radd"),
    "sub": ("sub", "rsub", "subtract"),
    "mul": ("mul", "rmul", "multiply"),
    "truediv": ("truediv", "rtruediv", "div", "divide"),
    "floordiv": ("floordiv", "rfloordiv", "floor_divide"),
    "mod": ("mod", "rmod", "remainder"),
}
ARITHMETIC = {name: getattr(operator, kind) for kind, names in _NAMES.items() for name in names}
ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "trunc": truncated,
}
COMPARISONS = {"gt": "le", "le": "gt", "ge": "lt", "lt": "ge", "eq": "ne", "ne": "eq"}  # with their negations
NEGATIONS = frozenset(("logical_not", "invert", "bitwise_not"))
FILLS = {"zeros": 0, "ones": 1}
# calls that make tensors of equal elements, with the place of the element among their arguments
FILLED = {"full": 1, "full_like": 1, "new_full": 2}
FILLED |= {form: 1 for name in FILLS for form in (name, f"new_{name}", f"{name}_like")}
# calls whose result has elements of their operand alone; slices may have none at another size
_KEEPING = """expand repeat tile reshape view unsqueeze squeeze flatten permute transpose t getitem select
    amax amin max min mean all any"""
KEEPING = frozenset(_KEEPING.split())
FOLLOWED = frozenset((*ROUNDINGS, *ARITHMETIC, *COMPARISONS, *NEGATIONS, *SAME, *KEEPING))
MOST_CHECKED = 1 << 16  # elements of a tensor whose number is followed


class Compared(NamedTuple):
    """A comparison of the numbers that two tensors hold."""

    name: str
    left: Any
    right: Any

    def outcome(self, *, traced: bool = True) -> bool:
        """Returns the outcome; comparisons of traced numbers are noted."""
        given = (self.left, self.right) if traced else map(untraced, (self.left, self.right))
        return bool(getattr(operator, self.name)(*given))


class SizeTensors:
    """The numbers that all elements of tensors of a run have, by the Values of these tensors.

    A number is a traced one, one that does not change with the sizes, or a comparison of these.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._held: dict[Value, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def note(self, name: Name, args: tuple[Any, ...], kwargs: dict[str, Any], tensor: torch.Tensor) -> None:
        """Notes the number that all elements of the result of a call have, if it is known."""
        own = _own(name)
        if own in CREATIONS and args and isinstance(args[0], TRACED):
            held: Any = args[0]
        elif own in FILLED:
            held = args[place] if (place := FILLED[own]) < len(args) else kwargs.get("fill_value")
            held = FILLS.get(own.removeprefix("new_").removesuffix("_like"), held)
            held = None if isinstance(held, torch.Tensor) else held
        elif own in FOLLOWED:
            held = self._followed(own, args, kwargs, tensor.dtype)
        else:
            return
        held = _as_type(held, tensor.dtype)
        if held is not None and 0 < tensor.numel() <= MOST_CHECKED:
            number = held.outcome(traced=False) if isinstance(held, Compared) else untraced(held)
            if self._recorder.run(lambda: bool((tensor == number).all())):
                self.fill(tensor, held)

    def fill(self, tensor: torch.Tensor, number: Any) -> None:
        """Notes the number that all elements of a tensor have."""
        self._held[self._recorder.value_of(tensor)] = number

    def _followed(self, own: str, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> Any:
        given = leaves((args, kwargs))
        if not any(isinstance(each, TRACED) or self._known(each) is not None for each in given):
            return None
        if own in KEEPING:
            index = args[1] if own == "getitem" else ()
            if any(isinstance(each, slice) and each != slice(None) for each in _parts(index)):
                return None
            tensors = [each for each in given if isinstance(each, torch.Tensor)]
            return self._known(tensors[0]) if len(tensors) == 1 else None
        if own in COMPARISONS and len(args) == 2:
            operands = [self._operand(each) for each in args]
            is_lost = any(each is None or isinstance(each, TracedFloat) for each in operands)
            return None if is_lost else Compared(own, *operands)
        if own in NEGATIONS:
            held = self._known(args[0])
            if isinstance(held, Compared):
                return held._replace(name=COMPARISONS[held.name])
            return not held if isinstance(held, bool) else None
        return self._computed(own, args, kwargs, dtype)

    def _known(self, leaf: object) -> Any:
        has_number = bool(self._held) and isinstance(leaf, torch.Tensor)
        return self._held.get(self._recorder.value_of(leaf)) if has_number else None

    def _operand(self, leaf: Any) -> Any:
        """Returns the number of an operand, also of a constant of one integer."""
        if not isinstance(leaf, torch.Tensor):
            return leaf if isinstance(leaf, NUMBERS) and not isinstance(leaf, bool) else None
        held = self._known(leaf)
        if isinstance(held, (bool, Compared)):
            return None
        if held is not None or leaf.dim() or leaf.dtype not in INTEGERS:
            return held
        is_constant = self._recorder.value_of(leaf).captured is not None
        return self._recorder.run(leaf.item) if is_constant else None

    def _computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> Any:
        first = self._known(args[0]) if name in SAME else self._operand(args[0])
        if first is None or name in SAME:
            return first
        if name in ROUNDINGS:
            return _rounded(first, name)
        second = self._operand(args[1]) if len(args) == 2 and not kwargs else None
        if second is None:
            return None
        is_reflected = name in ("rsub", "rtruediv", "rfloordiv", "rmod")
        pair = (second, first) if is_reflected else (first, second)
        if dtype != torch.float32 or not any(isinstance(each, TRACED) for each in pair):
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
        is_size = isinstance(held, TracedInt) and leaf.dtype in INTEGERS and not leaf.dim()
        return held if is_size else leaf

    def read(self, name: str, tensor: Any) -> Any:
        """Returns what ``item()``, ``tolist()`` or ``bool()`` return for the tensor; None where its number is
        not known.

        Raises IntTaken where ``int`` converts it.
        """
        held = self._known(tensor)
        if held is None or tensor.numel() != 1 or (name == "tolist" and tensor.dim()):
            return None
        if tensor.dtype == torch.bool and name in (*READS, "__bool__", "is_nonzero"):
            return held.outcome() if isinstance(held, Compared) else held
        if not isinstance(held, TRACED) or name not in (*READS, "__int__"):
            return None
        if name == "__int__":
            file = file_of_caller()
            if file is not None:
                raise IntTaken(file)
            return None
        if tensor.is_floating_point():
            return TracedFloat(float(untraced(held)), ("mul", held, 1.0), held.note)
        return held if isinstance(held, TracedInt) else None


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _own(name: Name) -> str:
    own = aten_name(name.text, name.is_method).strip("_").rpartition(":")[2]
    return own.removeprefix("torch.").partition(".")[0]


def _as_type(number: Any, dtype: torch.dtype) -> Any:
    """Returns the number in a tensor of ``dtype``; None where it is not followed."""
    if isinstance(number, Compared):
        return number if dtype == torch.bool else None
    if isinstance(number, NUMBERS) and not isinstance(number, TRACED):
        return bool(number) if dtype == torch.bool else number
    if dtype in INTEGERS:
        return _rounded(number, "trunc") if isinstance(number, TRACED) else None
    if dtype == torch.float32:
        return None if number is None else in_float32(number)
    return number if dtype == torch.float64 else None


def _rounded(number: Any, kind: str) -> Any:
    """Returns a float as a size; below 2**24, a guard, most roundings to float32 do not matter."""
    if not isinstance(number, TracedFloat):
        return number
    from tmconvert.ir.symbolic.rounded import rounds_like_integers

    fraction, steps, roundings = _fraction(number), *_steps(number)
    if roundings and fraction is not None and kind != "round" and rounds_like_integers(steps):
        above, below = fraction
        if above >= 0 and above * roundings < EXACT:
            return above if below == 1 else (above + (below - 1 if kind == "ceil" else 0)) // below
    return ROUNDINGS[kind](number)


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
