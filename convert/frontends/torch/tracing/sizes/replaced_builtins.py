"""Functions of Python that keep sizes traced in files of a model: ``min``, ``max``, ``len`` and ``range``."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tmconvert.frontends.torch.tracing.sizes.integers import (
    FUNCTIONS,
    NUMBERS,
    TRACED,
    FunctionFloat,
    TracedInt,
    choice,
    untraced,
)

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
