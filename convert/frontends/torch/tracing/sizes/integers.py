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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from tmconvert.ir.tree import leaves, map_leaves

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
        rounded = math.floor(self) if float.__ge__(self, 0) else math.ceil(self)
        self.note("int", rounded, None, True)
        return int.__int__(rounded)

    __trunc__ = __int__

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


class FunctionFloat(NumpyFloat):
    """A root or another function of sizes, or a number computed of one: a tensor computes with it.

    What Python rounds it to is a plain number, which runs at other sizes compare.
    """

    __floor__, __ceil__, __round__ = float.__floor__, float.__ceil__, float.__round__  # type: ignore[assignment]
    __int__, __trunc__ = float.__int__, float.__trunc__


NUMBERS = (int, float)
TO_TEXT = frozenset(("hash", "str", "format"))
TO_NUMBER = frozenset(("int", "float"))
_LARGEST_POWER = 4  # larger ones of sizes are not what a model computes
# the modules of functions of sizes that are no operators
FUNCTIONS = ("sqrt", "exp", "log", "log2", "log10")  # of ``math`` and NumPy, that a tensor can compute
HOMES = dict.fromkeys(("min", "max", "round"), "builtins") | dict.fromkeys(
    ("floor", "ceil", *FUNCTIONS), "math"
)
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


def _plain_call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*map(untraced, args))


def _power(base: Any, exponent: object) -> Any:
    """Returns a size or a float to the power of a plain number."""
    number = _plain_call(operator.pow, base, exponent)
    if not isinstance(number, float) or isinstance(exponent, TRACED):
        return number
    return FunctionFloat(number, ("pow", base, exponent), base.note)


def _of_math(name: str) -> Callable[..., Any]:
    """Returns the function of ``math`` that keeps a traced argument traced."""
    plain = getattr(math, name)

    @functools.wraps(plain)
    def function(*args: Any) -> Any:
        if not any(isinstance(each, TRACED) for each in args):
            return plain(*args)
        number = _plain_call(plain, *args)
        if len(args) == 2:  # a logarithm to a base
            return function(args[0]) / function(args[1])
        return FunctionFloat(number, (name, *args), args[0].note)

    return function


MATH: dict[str, Any] = {name: _of_math(name) for name in FUNCTIONS}


class _OfNumpy:
    """A function of NumPy of one argument that keeps a traced number traced; all else is as with NumPy's."""

    def __init__(self, name: str, of_number: Callable[[Any], Any]) -> None:
        self._plain, self._of_number = getattr(np, name), of_number

    def __call__(self, *args: Any, **options: Any) -> Any:
        if len(args) == 1 and not options and isinstance(args[0], TRACED):
            result = self._of_number(args[0])
            if isinstance(result, TracedInt):
                return NumpyFloat(float(untraced(result)), ("mul", result, 1.0), result.note)
            return result if isinstance(result, TRACED) else np.float64(result)
        return self._plain(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def _of_rounding(rounded: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda number: number if isinstance(number, TracedInt) else rounded(number)


_ROUNDED = {"floor": _of_rounding(math.floor), "ceil": _of_rounding(math.ceil)}
NUMPY: dict[str, Any] = {name: _OfNumpy(name, function) for name, function in (MATH | _ROUNDED).items()}


def _of_arrays(name: str) -> Callable[..., Any]:
    """Returns the function of NumPy that records which sizes it makes an array from."""
    plain = getattr(np, name)

    @functools.wraps(plain)
    def function(*args: Any, **options: Any) -> Any:
        for leaf in leaves((args, options)):
            if isinstance(leaf, TracedInt):
                leaf.note("int", leaf, None, True)
        args, options = map_leaves(untraced, (args, options))
        return plain(*args, **options)

    return function


NUMPY |= {name: _of_arrays(name) for name in ("arange", "linspace", "zeros", "ones", "full")}


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
        other = _of_python(other)
        if not isinstance(other, NUMBERS) or isinstance(other, bool):
            return NotImplemented
        left, right = (other, self) if swapped else (self, other)
        number = compute(untraced(left), untraced(right))
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
    for _name in ("pow", "divmod") + (("lshift", "rshift", "or_", "xor") if _class is TracedInt else ()):
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


Namespace = dict[str, Any]  # the global variables of a module of Python


@contextmanager
def sizes_of_builtins(
    called: Collection[object],
    replaced: Mapping[str, Mapping[str, Any]],
    further: Sequence[tuple[Namespace, Namespace]] = (),
) -> Iterator[None]:
    """Replaces functions that lose traced sizes: ``len``, ``min``, ``max`` and ``range`` in the packages of
    the classes of modules, or of a function, that are called, and torchvision, and some of ``math`` and
    NumPy. The latter are also found under another name in the files of the classes, but only under their own
    in the rest of the packages.

    ``replaced`` are further names to replace, by module; ``further`` functions, as those of NumPy.

    Modules that torch imports during the run keep Python's own functions.
    """
    own, others = _namespaces(called)
    given = [(file, name) for file in (*own, *others) for name in REPLACED if name not in file]
    for file, name in given:
        file[name] = REPLACED[name]
    for owner, values in replaced.items():
        for name, value in values.items():
            vars(sys.modules[owner])[name] = value
            given.append((vars(sys.modules[owner]), name))
    kept = [
        (file, name, file[name], value)
        for file, values in ((vars(math), MATH), (vars(np), NUMPY), *further)
        for name, value in values.items()
    ]
    known = {id(value): new for _, _, value, new in kept}
    usual = {name for _, name, _, _ in kept}
    # to look at each value of a large package takes longer than to trace a small model
    places = [*((file, file.keys()) for file in own), *((file, usual & file.keys()) for file in others)]
    kept += [
        (file, name, file[name], known[id(file[name])])
        for file, names in places
        for name in names
        if id(file[name]) in known
    ]
    for file, name, _, value in kept:
        file[name] = value
    try:
        yield
    finally:
        for file, name in given:
            file.pop(name, None)
        for file, name, value, _ in kept:
            file[name] = value


def _namespaces(called: Collection[object]) -> tuple[list[Namespace], list[Namespace]]:
    """Returns the namespaces of functions and of the classes of modules, and the others of their packages and
    of torchvision.
    """
    own = {getattr(each, "__module__", None) or "" for each in called}
    packages = {name.partition(".")[0] for name in own if "." in name} - {"torch"} | {"torchvision"}
    inside = tuple(f"{package}." for package in packages)
    others = {name for name in tuple(sys.modules) if name in packages or name.startswith(inside)} - own

    def of(names: Collection[str]) -> list[Namespace]:
        found = [name for name in names if name in sys.modules and not name.startswith("torch.")]
        return [vars(sys.modules[name]) for name in found]

    return of(own), of(others)
