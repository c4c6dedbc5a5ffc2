"""Registers functions and modules whose calls tracing records as one call, custom ops that it goes through,
and container classes of arguments and results. This module does not need torch."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, ParamSpec, TypeVar

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value

P = ParamSpec("P")
R = TypeVar("R")
# Records a call: (qualified name, function, args, kwargs) -> result; None when it is to run as it is.
RecordCall = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

_WRONG = "TM6021"
WRAPPED = "__tmconvert_name__"  # the attribute of a wrapped function with its name in graphs
_builtin_classes: list[type] = []


class SupportedType(NamedTuple):
    """Functions that flatten objects of a class to their parts and rebuild them."""

    flatten: Callable[[Any], tuple[Sequence[Any], Any]]
    unflatten: Callable[[Sequence[Any], Any], Any]


SUPPORTED_TYPES: dict[type, SupportedType] = {}
FOLLOWED_OPS: set[str] = set()  # the names of the ops of ``trace_through``


class _Active(threading.local):
    record: RecordCall | None = None


_active = _Active()


@contextmanager
def recording_calls(record: RecordCall) -> Iterator[None]:
    """Records calls of wrapped functions in this thread."""
    outer, _active.record = _active.record, record
    try:
        yield
    finally:
        _active.record = outer


def wrap(function: Callable[P, R]) -> Callable[P, R]:
    """Makes tracing record each call of a function as one call, instead of the calls inside. A decorator.

    The call has the qualified name of the function, ``package.module.function``; register its conversion
    under this name with ``register_symbolic``. Tensors may be nested in the arguments and in the result;
    their types are those of the traced run. Tracing raises UnsupportedError TM2021 for a function that writes
    to its arguments.

    Args:
        function: The function, at the top level of a module.

    Returns:
        A function that does the same; outside of tracing it runs ``function`` unchanged.

    Raises:
        UsageError: TM6021 for an object that is not a function.

    Example:
        >>> @tmconvert.wrap
        ... def swish(x, beta=1.0):
        ...     return x * torch.sigmoid(beta * x)
    """
    if isinstance(function, type) or not callable(function):
        raise UsageError(_WRONG, f"wrap requires a function, got {type_and_value(function)}")
    if hasattr(function, WRAPPED):
        return function
    module, qualname = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not module or not qualname:
        raise UsageError(_WRONG, f"wrap requires a function with a name, got {type_and_value(function)}")
    name = f"{module}.{qualname}"

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        record = _active.record
        if record is None:
            return function(*args, **kwargs)
        made: R = record(name, function, args, kwargs)
        return made

    setattr(wrapped, WRAPPED, name)
    return wrapped


def register_as_builtin(cls: type) -> type:
    """Makes tracing record each call of a module of a class as one call. Also a decorator of classes.

    Register its conversion with ``register_symbolic`` under the qualified name of the class; the first
    argument of that function is the module, whose parameters and buffers are in ``module.tensors`` and
    settings in ``module.attributes``.

    Args:
        cls: The class; its subclasses are not included.

    Returns:
        The class.

    Raises:
        UsageError: TM6021 for an object that is not a class.

    Example:
        >>> tmconvert.register_as_builtin(MyAttention)  # doctest: +SKIP
    """
    if not isinstance(cls, type):
        raise UsageError(_WRONG, f"register_as_builtin requires a class, got {type_and_value(cls)}")
    check_leaf(cls)
    if cls not in _builtin_classes:
        _builtin_classes.append(cls)
    return cls


def trace_through(op: R) -> R:
    """Makes tracing follow the Python body of a custom op, instead of recording the op as one call.

    The body has to compute with torch, as the default implementation of the op does; kernels of other devices
    are not used. A symbolic of the op is not needed then, nor used. Also a decorator.

    Args:
        op: What ``torch.library.custom_op`` returns.

    Returns:
        The op.

    Raises:
        UsageError: TM6021 for another object.

    Example:
        >>> @tmconvert.trace_through
        ... @torch.library.custom_op("mylib::swish", mutates_args=())
        ... def swish(x: torch.Tensor) -> torch.Tensor:
        ...     return x * torch.sigmoid(x)  # doctest: +SKIP
    """
    name = getattr(op, "_qualname", None)
    if not isinstance(name, str) or not callable(getattr(op, "_init_fn", None)):
        raise UsageError(
            _WRONG,
            f"trace_through requires an op of torch.library.custom_op, got {type_and_value(op)}",
            notes=[("help", "for ops with another body, use tmconvert.register_symbolic")],
        )
    FOLLOWED_OPS.add(name)
    return op


def register_supported_type(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Sequence[Any], Any], Any],
) -> None:
    """Lets arguments and results of traced models be objects of a class.

    In the graph such an object is the list of its parts.

    Args:
        cls: The class.
        flatten: A function of an object, which returns its parts, a list with tensors or other containers,
            and a context.
        unflatten: A function of the parts and the context, which rebuilds the object.

    Raises:
        UsageError: TM6021 for a class that is registered already, or is not a class.

    Example:
        >>> tmconvert.register_supported_type(
        ...     Boxes, lambda boxes: ([boxes.tensor], None), lambda parts, _: Boxes(parts[0])
        ... )  # doctest: +SKIP
    """
    if not isinstance(cls, type):
        raise UsageError(_WRONG, f"register_supported_type requires a class, got {type_and_value(cls)}")
    if not callable(flatten) or not callable(unflatten):
        raise UsageError(_WRONG, f"flatten and unflatten of {cls.__qualname__} must be functions")
    if cls in SUPPORTED_TYPES:
        raise UsageError(_WRONG, f"the class {cls.__qualname__} is registered already")
    SUPPORTED_TYPES[cls] = SupportedType(flatten, unflatten)


def check_leaf(cls: object) -> None:
    """Raises UsageError TM6021 for a class of ``torch.autograd.Function``, whose objects are not modules."""
    bases = [f"{base.__module__}.{base.__qualname__}" for base in getattr(cls, "__mro__", ())]
    if "torch.autograd.function.Function" in bases:
        raise UsageError(
            _WRONG,
            f"{cls.__qualname__} is a torch.autograd.Function, whose objects are not modules",  # type: ignore[attr-defined]
            notes=[("help", "give it a static method symbolic(g, ...): docs/custom-ops.md")],
        )


def is_builtin(module: object, path: str) -> bool:
    """Whether the class of a module is one of ``register_as_builtin``."""
    return type(module) in _builtin_classes


def is_plain_function(value: object) -> bool:
    """Whether a value is a Python function that was not wrapped."""
    return inspect.isfunction(value) and not hasattr(value, WRAPPED)
