"""Integers with provenance: sizes of tensors, and integers that Python computes from them.

A TracedInt is an int with the size of this run; it also records how it was computed, so that a call with it
as an argument can be repeated at other sizes. The plain numbers that ``int(n)`` and ``float(n)`` make of it
are found again among the arguments of calls (``recovered_sizes.py``). Python can convert it to other values
(``range(n)``, ``f"{n}"``) without a trace; such specializations are found by runs at other sizes
(``validate_dynamic_shapes.py``), including those that the code mentions (``code_numbers.py``).
"""

from __future__ import annotations

import builtins
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tmconvert.ir.tree import map_leaves

# Libraries that cache what they compute from sizes, unless these have no hash, like torch.SymInt. From the
# cache they would take sizes of another tensor, or of another run, that happen to be equal.
CACHING = frozenset(("einops",))
PRIORITY = 1e6  # NumPy's numbers leave the computation with a traced one to it


class TracedInt(int):
    """A size: ``origin`` is ("size", Value, axis), ("numel", Value) or (operator's name, left, right).

    ``note`` is called for each comparison with (name, left, right, outcome), and returns the outcome that the
    module gets. It is also called with a name of ``TO_TEXT`` or ``TO_NUMBER`` where a size becomes text, a
    hash or a plain number.
    """

    origin: tuple[Any, ...]
    note: Callable[[str, Any, Any, bool], bool]
    __array_priority__ = PRIORITY

    def __new__(cls, number: int, origin: tuple[object, ...], note: Callable[..., bool]) -> TracedInt:
        self = super().__new__(cls, number)
        self.origin, self.note = origin, note
        return self

    def __hash__(self) -> int:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if CACHING.intersection(caller.split(".")):
            raise TypeError("unhashable: a traced size")
        self.note("hash", self, None, True)
        return int.__hash__(self)

    def __str__(self) -> str:
        self.note("str", self, None, True)
        return int.__repr__(self)

    def __format__(self, spec: str) -> str:
        self.note("format", self, None, True)
        return int.__format__(self, spec)

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        self.note("int", self, None, True)
        return int.__int__(self)

    def __float__(self) -> float:
        self.note("float", self, None, True)
        return int.__float__(self)

    def __floor__(self) -> TracedInt:
        return self

    __ceil__ = __trunc__ = __floor__

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None or digits >= 0 else lost(int.__round__, self, digits)

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> TracedInt:
        return self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rshift__(self, count: Any) -> Any:
        return self // (1 << int(count))

    def __lshift__(self, count: Any) -> Any:
        return self * (1 << int(count))

    def __and__(self, mask: Any) -> Any:
        is_remainder = isinstance(mask, int) and mask > 0 and not untraced(mask) & (untraced(mask) + 1)
        return self % (int(mask) + 1) if is_remainder else lost(operator.and_, self, mask)

    __rand__ = __and__

    def __invert__(self) -> Any:
        return -self - 1

    def __abs__(self) -> Any:
        return self if _is_never_negative(self) else choice(max, self, -self)

    @property
    def numerator(self) -> Any:
        return self

    def bit_length(self) -> Any:
        size = self if _is_never_negative(self) else choice(max, self, -self)
        return floor_log2(size, 0.5) + 1

    def __rlshift__(self, number: Any) -> Any:
        return number * self.__rpow__(2)

    def __rpow__(self, base: Any, modulus: Any = None) -> Any:
        power = plain_call(operator.pow, _of_python(base), self)
        is_followed = base == 2 and isinstance(power, int)
        return TracedInt(power, ("pow", 2, self), self.note) if is_followed else lost(pow, base, self)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if isinstance(exponent, NUMBERS) and (exponent % 1 or exponent == -1):
            return _power(self, exponent)
        if not isinstance(exponent, int) or not 1 <= exponent <= _LARGEST_POWER or modulus is not None:
            return lost(int.__pow__, self, exponent, modulus)
        power: Any = self
        for _ in range(int(exponent) - 1):
            power = power * self
        return power

    def __reduce__(self) -> Any:  # what is copied or pickled is a plain number
        return int, (int.__int__(self),)


class TracedFloat(float):
    """A quotient or product of sizes and numbers; ``math.floor`` and ``ceil`` convert it to a size."""

    origin: tuple[Any, ...]
    note: Callable[[str, Any, Any, bool], bool]
    __array_priority__ = PRIORITY

    def __new__(cls, number: float, origin: tuple[object, ...], note: Callable[..., bool]) -> TracedFloat:
        self = super().__new__(cls, number)
        self.origin, self.note = origin, note
        return self

    __hash__ = float.__hash__

    def __floor__(self) -> TracedInt:
        return TracedInt(float.__floor__(self), ("floor", self), self.note)

    def __ceil__(self) -> TracedInt:
        return TracedInt(float.__ceil__(self), ("ceil", self), self.note)

    def __round__(self, digits: Any = None) -> Any:
        if digits is not None:
            return lost(float.__round__, self, digits)
        return TracedInt(float.__round__(self), ("round", self), self.note)

    def __int__(self) -> int:
        rounded = truncated(self)
        if isinstance(rounded, TracedInt):
            self.note("int", rounded, None, True)
        return int.__int__(rounded)

    def __trunc__(self) -> int:
        return truncated(self)

    def __abs__(self) -> Any:
        return lost(float.__abs__, self)

    def is_integer(self) -> bool:
        found: bool = lost(float.is_integer, self)
        return found

    def __rpow__(self, base: Any, modulus: Any = None) -> Any:
        power = plain_call(operator.pow, _of_python(base), self)
        return FunctionFloat(power, ("pow", 2.0, self), self.note) if base == 2 else power

    def __pow__(self, exponent: object, modulus: object = None) -> Any:
        return _power(self, exponent)

    def __reduce__(self) -> Any:
        return float, (float.__float__(self),)


class NumpyFloat(TracedFloat):
    """A number that NumPy rounded, or one computed of it: it also has the methods of ``np.float64``."""

    def astype(self, dtype: object, **options: Any) -> Any:
        plain = np.float64(untraced(self)).astype(dtype, **options)
        return int(self) if plain.dtype.kind in "iu" else plain

    def __getattr__(self, name: str) -> Any:
        return getattr(np.float64(untraced(self)), name)


class SingleFloat(NumpyFloat):
    """A number that NumPy computes in float32."""


class FunctionFloat(NumpyFloat):
    """A root or another function of sizes, or a number computed of one: a tensor computes with it.

    Square roots, powers of 2 and logarithms to base 2 are rounded to sizes; other roundings are lost.
    """

    def __floor__(self) -> Any:
        return _rounded_function(self, "floor")

    def __ceil__(self) -> Any:
        return _rounded_function(self, "ceil")

    def __round__(self, digits: Any = None) -> Any:
        return _rounded_function(self, "round") if digits is None else lost(float.__round__, self, digits)


class LostInt(TracedInt):
    """An integer that Python made of sizes by a function that files do not compute alike at all sizes.

    It is a plain number on the tape. ``note`` is called where it is made, and returns the number, which is
    another one in runs that show what depends on it.
    """

    def __int__(self) -> int:
        self.note("int", self, None, True)
        return untraced(self)


class LostFloat(FunctionFloat):
    """A float like ``LostInt``."""


LOST = (LostInt, LostFloat)


def lost(function: Callable[..., Any], *operands: Any) -> Any:
    """Returns what a function makes of traced numbers as a number that is compared with a note."""
    number = plain_call(function, *operands)
    note = next(each.note for each in operands if isinstance(each, TRACED))
    return lost_number(number, operands, note)


def lost_number(number: Any, operands: tuple[Any, ...], note: Callable[..., bool]) -> Any:
    """Returns a plain number as one of these operands that is lost; a bool is the outcome of its note."""
    number, origin = _of_python(number), ("lost", *operands)
    if isinstance(number, bool):
        return note(CONDITION, LostInt(number, origin, note), None, number)
    if isinstance(number, int):
        made = LostInt(number, origin, note)
        is_known = any(isinstance(each, LostInt) for each in operands)
        return made if is_known else LostInt(note("lost", made, None, number), origin, note)
    return LostFloat(number, origin, note) if isinstance(number, float) else number


NUMBERS = (int, float)
CONDITION = "condition"  # what a bool read of a tensor that is made of sizes is noted as
TO_TEXT = frozenset(("hash", "str", "format"))
TO_NUMBER = frozenset(("int", "float"))
_LARGEST_POWER = 4  # larger ones of sizes are not what a model computes
FUNCTIONS = ("sqrt", "exp", "log", "log2", "log10")  # of ``math`` and NumPy, that a tensor can compute
_log = math.log
TRACED = (TracedInt, TracedFloat)


def untraced(leaf: object) -> Any:
    """Returns the plain number of a traced one; other values unchanged."""
    if isinstance(leaf, TracedInt):
        return int.__int__(leaf)
    return float.__float__(leaf) if isinstance(leaf, TracedFloat) else leaf


def untraced_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns arguments with plain numbers. A ``torch.Size`` stays one: torch reads other tuples as data."""
    plain, named = map_leaves(untraced, (args, kwargs))
    sizes = [
        torch.Size(new) if isinstance(old, torch.Size) else new for old, new in zip(args, plain, strict=True)
    ]
    return tuple(sizes), {
        key: torch.Size(new) if isinstance(kwargs[key], torch.Size) else new for key, new in named.items()
    }


def plain_call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*map(untraced, args))


def _power(base: Any, exponent: object) -> Any:
    """Returns a size or a float to the power of a plain number."""
    number = plain_call(operator.pow, base, exponent)
    if not isinstance(number, float) or isinstance(exponent, TRACED):
        return lost(operator.pow, base, exponent)
    return FunctionFloat(number, ("pow", base, exponent), base.note)


def truncated(number: TracedFloat) -> Any:
    """Returns what ``int`` makes of a traced float, whose sign may be another one at other sizes."""
    down, up = number.__floor__(), number.__ceil__()
    if isinstance(down, LostInt):
        return lost(float.__trunc__, number)
    if _is_never_negative(number):
        return down
    return choice(max, down, 0) + choice(min, up, 0)


def _is_never_negative(number: Any) -> bool:
    if not isinstance(number, TRACED):
        return isinstance(number, NUMBERS) and bool(number >= 0)
    kind, *operands = number.origin
    return kind in _KEPT_SIGNS or (kind in _SIGNS and all(map(_is_never_negative, operands)))


_KEPT_SIGNS = frozenset(("size", "numel", "sqrt", "exp"))
_SIGNS = frozenset(
    ("add", "mul", "truediv", "floordiv", "min", "max", "floor", "ceil", "round", "float32", "pow")
)


def in_float32(number: Any) -> Any:
    """Returns a traced or plain number rounded to float32."""
    if isinstance(number, SingleFloat) or not isinstance(number, TRACED):
        return number if isinstance(number, SingleFloat) else float(np.float32(number))
    return SingleFloat(float(np.float32(untraced(number))), ("float32", number), number.note)


def in_single(name: str, left: Any, right: Any) -> Any:
    """Returns a sum, difference, product or quotient in float32: that of float64, rounded once more."""
    left, right = in_float32(left), in_float32(right)
    note = left.note if isinstance(left, TRACED) else right.note
    number = plain_call(getattr(operator, name), left, right)
    return in_float32(TracedFloat(number, (name, left, right), note))


def floor_log2(size: Any, more: float) -> Any:
    """Returns the logarithm to base 2 of a size and a half, or less a half, rounded down.

    Between two integers, rounding errors of the logarithm do not matter.
    """
    half = size + more
    log = FunctionFloat(_log(untraced(half)), ("log", half), half.note)
    quotient = log / _log(2.0)
    return TracedInt(float.__floor__(quotient), ("floor", quotient), half.note)


def _rounded_function(number: FunctionFloat, kind: str) -> Any:
    name, *operands = number.origin
    if name == "log2" and isinstance(operands[0], TracedInt) and kind != "round":
        return floor_log2(operands[0], 0.5) if kind == "floor" else floor_log2(operands[0], -0.5) + 1
    function = getattr(float, f"__{kind}__")
    return (
        TracedInt(function(number), (kind, number), number.note)
        if is_exact(number)
        else lost(function, number)
    )


def is_exact(number: Any) -> bool:
    """Whether all runtimes compute the same float64: by arithmetic, square roots and powers of 2."""
    if not isinstance(number, (FunctionFloat, LostInt)):
        return True
    name, *operands = number.origin
    is_root = name == "pow" and operands[1:] == [0.5]
    is_known = is_root or name in ("add", "sub", "mul", "truediv", "sqrt", "float32")
    return (is_known or (name == "pow" and operands[0] == 2.0)) and all(map(is_exact, operands))


def _of_python(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number


def _plain_of_numpy(compute: Callable[[Any, Any], Any], left: object, right: object) -> Any:
    """Computes with an array of NumPy, or with a number of it that has no counterpart in Python."""
    return compute(untraced(left), untraced(right))


def _arithmetic(name: str, swapped: bool) -> Callable[[Any, Any], Any]:
    compute = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return _plain_of_numpy(compute, *((other, self) if swapped else (self, other)))
        if type(other) is list and len(other) == 1 and name == "mul":
            from tmconvert.frontends.torch.tracing.sizes.repeated_numbers import RepeatedNumber

            return RepeatedNumber(other * untraced(self), self)
        if isinstance(other, np.floating) and _is_single(compute, self, other):
            other = SingleFloat(float(other), ("float32", float(other)), self.note)
        other = _of_python(other)
        if not isinstance(other, NUMBERS) or isinstance(other, bool):
            return NotImplemented
        left, right = (other, self) if swapped else (self, other)
        if isinstance(left, LOST) or isinstance(right, LOST):
            return lost(compute, left, right)
        if isinstance(left, SingleFloat) or isinstance(right, SingleFloat):
            return _computed_in_single(name, left, right)
        number = compute(untraced(left), untraced(right))
        if name in ("floordiv", "mod") and isinstance(number, float):
            is_whole = isinstance(self, TracedInt) and float(untraced(other)).is_integer()
            whole = (
                compute(*(each if each is self else int(each) for each in (left, right))) if is_whole else 0
            )
            return (
                TracedFloat(number, ("mul", whole, 1.0), self.note)
                if is_whole
                else lost(compute, left, right)
            )
        if isinstance(number, int):
            return TracedInt(number, (name, left, right), self.note)
        if isinstance(number, float):
            kinds = (FunctionFloat, NumpyFloat, TracedFloat)
            kind = next(
                each
                for each in kinds
                if isinstance(left, each) or isinstance(right, each) or each is TracedFloat
            )
            return kind(number, (name, left, right), self.note)
        return number

    return method


def _is_single(compute: Callable[[Any, Any], Any], number: Any, other: np.floating[Any]) -> bool:
    """Whether NumPy computes with a number of its own in float32, which its releases do not all do."""
    return isinstance(compute(_of_numpy(number), other), np.float32)


def _of_numpy(number: Any) -> Any:
    kinds = ((SingleFloat, np.float32), (NumpyFloat, np.float64))
    kind = next((kind for traced, kind in kinds if isinstance(number, traced)), None)
    return untraced(number) if kind is None else kind(untraced(number))


def _computed_in_single(name: str, left: Any, right: Any) -> Any:
    pair = _of_numpy(left), _of_numpy(right)
    number = getattr(operator, name)(*pair)
    if any(isinstance(each, FunctionFloat) for each in (left, right)) or name in ("floordiv", "mod"):
        return number
    if isinstance(number, np.float32):
        return in_single(name, left, right)
    return NumpyFloat(
        float(number), (name, left, right), left.note if isinstance(left, TRACED) else right.note
    )


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    compute = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return _plain_of_numpy(compute, self, other)
        other = _of_python(other)
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return self.note(name, self, other, compute(untraced(self), untraced(other)))

    return method


def _symmetric(name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: lost(getattr(operator, name), self, other)


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    """An operation that gives a plain number, which NumPy's numbers leave to the traced one."""
    compute = getattr(operator, name, None) or getattr(builtins, name)

    def method(self: object, other: object) -> Any:
        if isinstance(other, (*NUMBERS, np.generic, np.ndarray)):
            return _plain_of_numpy(compute, other, self)
        return NotImplemented

    return method


TracedInt.__or__ = TracedInt.__ror__ = _symmetric("or_")  # type: ignore[method-assign]
TracedInt.__xor__ = TracedInt.__rxor__ = _symmetric("xor")  # type: ignore[method-assign]
for _class in TRACED:
    for _name in ("divmod", *(("rshift",) if _class is TracedInt else ())):
        setattr(_class, f"__r{_name.strip('_')}__", _reflected(_name))
    for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
        setattr(_class, f"__{_name}__", _arithmetic(_name, False))
        setattr(_class, f"__r{_name}__", _arithmetic(_name, True))
    for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(_class, f"__{_name}__", _comparison(_name))


def choice(choose: Callable[..., Any], one: Any, two: Any) -> Any:
    """Returns the minimum or maximum of two numbers where one is traced."""
    if isinstance(one, LOST) or isinstance(two, LOST):
        return lost(choose, one, two)
    note = one.note if isinstance(one, TRACED) else two.note
    number = choose(untraced(one), untraced(two))
    is_size = isinstance(one, int) and isinstance(two, int)
    return (TracedInt if is_size else TracedFloat)(number, (choose.__name__, one, two), note)
