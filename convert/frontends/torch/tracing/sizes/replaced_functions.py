"""Functions of Python, ``math`` and NumPy that keep sizes traced while a module runs."""

from __future__ import annotations

import builtins
import functools
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from tmconvert.frontends.torch.tracing.sizes.integers import (
    FUNCTIONS,
    NUMBERS,
    TRACED,
    FunctionFloat,
    NumpyFloat,
    TracedInt,
    choice,
    lost,
    plain_call,
    untraced,
)
from tmconvert.ir.tree import leaves, map_leaves

# the modules of functions of sizes that are no operators
HOMES = dict.fromkeys(("min", "max", "round"), "builtins") | dict.fromkeys(
    ("floor", "ceil", *FUNCTIONS), "math"
)
HOMES["float32"] = "numpy"


def computation(kind: str) -> tuple[str, bool]:
    """Returns the function of the first item of an ``origin``, and whether it is a method of a tensor.

    >>> computation("size"), computation("floordiv"), computation("ceil")
    (('size', True), ('operator.floordiv', False), ('math.ceil', False))
    """
    if kind in ("size", "numel"):
        return kind, True
    return f"{HOMES.get(kind, 'operator')}.{kind}", False


def _choice(name: str) -> Callable[..., Any]:
    choose = getattr(builtins, name)
    of_two = functools.partial(choice, choose)

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
        plain = builtins.range(*bounds)
        traced = next((bound for bound in bounds if isinstance(bound, TracedInt)), None)
        if traced is None or not traced.note("range", traced, None, False):
            return plain
        from tmconvert.frontends.torch.tracing.loops.counters import CountedRange

        return CountedRange(plain, traced.note)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, builtins.range) or type(instance).__name__ == "CountedRange"


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


def _of_math(name: str) -> Callable[..., Any]:
    """Returns the function of ``math`` that keeps a traced argument traced."""
    plain = getattr(math, name)

    @functools.wraps(plain)
    def function(*args: Any) -> Any:
        if not any(isinstance(each, TRACED) for each in args):
            return plain(*args)
        if name not in FUNCTIONS:
            return lost(plain, *args)
        number = plain_call(plain, *args)
        if len(args) == 2:  # a logarithm to a base
            return function(args[0]) / function(args[1])
        return FunctionFloat(number, (name, *args), args[0].note)

    return function


def _of_isqrt(size: Any) -> Any:
    return math.floor(MATH["sqrt"](size)) if isinstance(size, TracedInt) else _isqrt(size)


def _of_pow(base: Any, exponent: Any) -> Any:
    is_traced = isinstance(base, TRACED) or isinstance(exponent, TRACED)
    return (base * 1.0) ** exponent if is_traced else _pow(base, exponent)


_isqrt, _pow = math.isqrt, math.pow
_FOLLOWED = frozenset(("floor", "ceil", "trunc", "prod", "fsum", "isqrt", "pow"))
_NAMES = [name for name, each in vars(math).items() if callable(each) and name[0] != "_"]
MATH: dict[str, Any] = {name: _of_math(name) for name in _NAMES if name not in _FOLLOWED}
MATH |= {"isqrt": _of_isqrt, "pow": _of_pow}
_FURTHER = ("sin", "cos", "tan", "tanh", "arctan", "cbrt", "log1p", "expm1", "exp2", "square")


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
_ROUNDED |= dict.fromkeys(("round", "around", "rint"), _of_rounding(round))
_ROUNDED |= dict.fromkeys(("trunc", "fix"), _of_rounding(math.trunc))
NUMPY: dict[str, Any] = {
    name: _OfNumpy(name, function)
    for name, function in ({name: MATH[name] for name in FUNCTIONS} | _ROUNDED).items()
} | {name: _OfNumpy(name, functools.partial(lost, getattr(np, name))) for name in _FURTHER}


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
    """Returns namespaces of functions and module classes, and the others of torch and torchvision."""
    own = {getattr(each, "__module__", None) or "" for each in called}
    packages = {name.partition(".")[0] for name in own if "." in name} - {"torch"} | {"torchvision"}
    inside = tuple(f"{package}." for package in packages)
    others = {name for name in tuple(sys.modules) if name in packages or name.startswith(inside)} - own

    def of(names: Collection[str]) -> list[Namespace]:
        found = [name for name in names if name in sys.modules and not name.startswith("torch.")]
        return [vars(sys.modules[name]) for name in found]

    return of(own), of(others)
