"""Integers with provenance: sizes of tensors, and integers that Python computes from them.

A TracedInt is an int with the size of this run; it also records how it was computed, so that a call with it
as an argument can be repeated at other sizes. The plain numbers that ``int(n)`` and ``float(n)`` make of it
are found again among the arguments of calls (``recovered_sizes.py``). Python can convert it to other values
(``range(n)``, ``f"{n}"``) without a trace; such specializations are found by runs at other sizes
(``validate_dynamic_shapes.py``), including those that the code mentions (``code_numbers.py``).
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterable
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
        return self if digits is None or digits >= 0 else int.__round__(self, digits)

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
        is_remainder = isinstance(mask, int) and mask > 0 and not mask & (mask + 1)
        return self % (int(mask) + 1) if is_remainder else int.__and__(self, mask)

    __rand__ = __and__

    def bit_length(self) -> Any:
        size = self if _is_never_negative(self) else REPLACED["max"](self, -self)
        return floor_log2(size, 0.5) + 1

    def __rlshift__(self, number: Any) -> Any:
        return number * self.__rpow__(2)

    def __rpow__(self, base: Any, modulus: Any = None) -> Any:
        power = plain_call(operator.pow, _of_python(base), self)
        is_followed = base == 2 and isinstance(power, int)
        return TracedInt(power, ("pow", 2, self), self.note) if is_followed else power

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if isinstance(exponent, NUMBERS) and (exponent % 1 or exponent == -1):
            return _power(self, exponent)
        if not isinstance(exponent, int) or not 1 <= exponent <= _LARGEST_POWER or modulus is not None:
            return int.__pow__(self, exponent, modulus)
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
        number = float.__round__(self, digits)
        return TracedInt(number, ("round", self), self.note) if digits is None else number

    def __int__(self) -> int:
        rounded = truncated(self)
        if isinstance(rounded, TracedInt):
            self.note("int", rounded, None, True)
        return int.__int__(rounded)

    def __trunc__(self) -> int:
        return truncated(self)

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

    Square roots, powers of 2 and logarithms to base 2 are rounded to sizes. What Python rounds others to is
    a plain number, which runs at other sizes compare.
    """

    def __floor__(self) -> Any:
        return _rounded_function(self, "floor")

    def __ceil__(self) -> Any:
        return _rounded_function(self, "ceil")

    def __round__(self, digits: Any = None) -> Any:
        return _rounded_function(self, "round") if digits is None else float.__round__(self, digits)


NUMBERS = (int, float)
TO_TEXT = frozenset(("hash", "str", "format"))
TO_NUMBER = frozenset(("int", "float"))
_LARGEST_POWER = 4  # larger ones of sizes are not what a model computes
# the modules of functions of sizes that are no operators
FUNCTIONS = ("sqrt", "exp", "log", "log2", "log10")  # of ``math`` and NumPy, that a tensor can compute
HOMES = dict.fromkeys(("min", "max", "round"), "builtins") | dict.fromkeys(
    ("floor", "ceil", *FUNCTIONS), "math"
)
HOMES["float32"] = "numpy"
_log = math.log
TRACED = (TracedInt, TracedFloat)


def computation(kind: str) -> tuple[str, bool]:
    """Returns the function of the first item of an ``origin``, and whether it is a method of a tensor.

    >>> computation("size"), computation("floordiv"), computation("ceil")
    (('size', True), ('operator.floordiv', False), ('math.ceil', False))
    """
    if kind in ("size", "numel"):
        return kind, True
    return f"{HOMES.get(kind, 'operator')}.{kind}", False


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
        return number
    return FunctionFloat(number, ("pow", base, exponent), base.note)


def truncated(number: TracedFloat) -> Any:
    """Returns what ``int`` makes of a traced float, whose sign may be another one at other sizes."""
    down, up = number.__floor__(), number.__ceil__()
    if _is_never_negative(number) or not isinstance(down, TracedInt):
        return down if untraced(number) >= 0 else up
    return REPLACED["max"](down, 0) + REPLACED["min"](up, 0)


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
    plain = getattr(float, f"__{kind}__")(number)
    return TracedInt(plain, (kind, number), number.note) if _is_exact(number) else plain


def _is_exact(number: Any) -> bool:
    """Whether all runtimes compute the same float64: by arithmetic, square roots and powers of 2."""
    if not isinstance(number, FunctionFloat):
        return True
    name, *operands = number.origin
    is_root = name == "pow" and operands[1:] == [0.5]
    is_known = is_root or name in ("add", "sub", "mul", "truediv", "sqrt", "float32")
    return (is_known or (name == "pow" and operands[0] == 2.0)) and all(map(_is_exact, operands))


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
        if isinstance(left, SingleFloat) or isinstance(right, SingleFloat):
            return _computed_in_single(name, left, right)
        number = compute(untraced(left), untraced(right))
        if name in ("floordiv", "mod") and isinstance(number, float):
            is_whole = isinstance(self, TracedInt) and float(untraced(other)).is_integer()
            whole = (
                compute(*(each if each is self else int(each) for each in (left, right))) if is_whole else 0
            )
            return TracedFloat(number, ("mul", whole, 1.0), self.note) if is_whole else number
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


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    """An operation that gives a plain number, which NumPy's numbers leave to the traced one."""
    compute = getattr(operator, name, None) or getattr(builtins, name)

    def method(self: object, other: object) -> Any:
        if isinstance(other, (*NUMBERS, np.generic, np.ndarray)):
            return _plain_of_numpy(compute, other, self)
        return NotImplemented

    return method


for _class in TRACED:
    for _name in ("divmod", *(("rshift", "or_", "xor") if _class is TracedInt else ())):
        setattr(_class, f"__r{_name.strip('_')}__", _reflected(_name))
    for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
        setattr(_class, f"__{_name}__", _arithmetic(_name, False))
        setattr(_class, f"__r{_name}__", _arithmetic(_name, True))
    for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(_class, f"__{_name}__", _comparison(_name))


def _choice(name: str) -> Callable[..., Any]:
    choose = getattr(builtins, name)

    def of_two(one: Any, two: Any) -> Any:
        note = one.note if isinstance(one, TRACED) else two.note
        number = choose(untraced(one), untraced(two))
        is_size = isinstance(one, int) and isinstance(two, int)
        return (TracedInt if is_size else TracedFloat)(number, (name, one, two), note)

    def chosen(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Iterable) and not isinstance(args[0], torch.Tensor):
            args = (list(args[0]),)  # it may be an iterator, which is used up
        items = args[0] if len(args) == 1 and isinstance(args[0], list) else args
        traced = [item for item in items if isinstance(item, TRACED)]
        is_followed = all(isinstance(item, NUMBERS) and not isinstance(item, FunctionFloat) for item in items)
        if not traced or options or not is_followed:
            return choose(*args, **options)
        numbers = [item for item in items if not isinstance(item, TRACED)]
        return functools.reduce(of_two, [*traced, choose(numbers)] if numbers else traced)

    return chosen


def _length(value: Any) -> Any:
    """``len`` of a tensor that stays traced."""
    if isinstance(value, torch.Tensor) and value.dim():
        return value.shape[0]
    return _len(value)


class _CalledRange(type):
    """The type of ``TracedRange``: calling it makes a range, and all else is as with ``range``."""

    def __call__(cls, *bounds: Any) -> Any:
        for bound in bounds:
            if isinstance(bound, TracedInt):
                name, other = ("int", None) if bound.origin[0] == "size" else ("eq", untraced(bound))
                bound.note(name, bound, other, True)
        return builtins.range(*bounds)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, builtins.range)


class TracedRange(metaclass=_CalledRange):
    """``range`` in files of the model: the trace is valid where a computed bound is that of the example.

    A loop over chunks, ``range(n // 64)``, makes the same calls at all small sizes.
    """


_len = len
REPLACED: dict[str, Any] = {
    "min": _choice("min"),
    "max": _choice("max"),
    "len": _length,
    "range": TracedRange,
}
