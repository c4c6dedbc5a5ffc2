"""Tracing arguments, and errors for what they lack; this module does not need torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.values import shown_value, type_and_value

# sizes to leave open, in any form that ``torch.export`` accepts: see open_sizes
DynamicShapes = Mapping[str, Mapping[Any, Any] | Sequence[Any] | None] | Sequence[Any] | object


class AutomaticSize(str):
    """The name of a size that is ``Dim.AUTO`` or ``Dim.DYNAMIC``."""

    __slots__ = ()


class FreeSize(AutomaticSize):
    """The name of a size that is ``Dim.AUTO``, which may be static."""

    __slots__ = ()


class Tracing(NamedTuple):
    """Arguments of tracing: example inputs, dynamic sizes and permissions.

    ``args`` and ``kwargs`` are the example inputs, tensors or arrays; without any, those of the model are
    used. ``dynamic_shapes``, ``freeze_control_flow`` and ``training`` are those of ``tmconvert.trace``;
    ``allow_code`` permits running code from a file. ``is_leaf(module, path)`` selects the modules that are
    recorded as one call; None selects those of ``register_as_builtin``. ``signature`` names that of a file
    with several, which is not traced. ``fix`` has numbers of dynamic sizes by name, which the file then has.
    ``state`` names tensors that the model keeps from call to call, which become inputs and outputs;
    with ``noise="input"`` random tensors become inputs, and with ``roll_loops`` equal rounds of Python loops
    a loop. ``sizes_of_call`` are dynamic sizes that depend on
    the module: a sequence by argument, or a collection of ``torch.export``.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None
    freeze_control_flow: bool = False
    allow_code: bool = False
    is_leaf: Callable[[Any, str], bool] | None = None
    training: bool = False
    signature: str = ""
    fix: Mapping[str, int] = MappingProxyType({})
    state: tuple[str, ...] = ()
    noise: str = ""
    sizes_of_call: object = None
    roll_loops: bool = False

    @classmethod
    def of(
        cls,
        args: object,
        kwargs: Mapping[str, object] | None,
        dynamic_shapes: DynamicShapes | None,
        freeze_control_flow: bool,
        allow_code: bool,
        training: bool = False,
        signature: str | None = None,
        fix: Mapping[str, int] | None = None,
        state: Sequence[str] | None = None,
        noise: str | None = None,
        roll_loops: bool = False,
    ) -> Tracing:
        """Validates the arguments of callers, None for a missing one; a single tensor or array is the only
        input.

        Raises UsageError TM6008, TM6014.
        """
        if args is not None and not isinstance(args, (tuple, list)):
            if not hasattr(args, "shape"):
                raise _no_inputs("example_inputs", args, "(x, ...), a tuple of the arguments of forward")
            args = (args,)
        if kwargs is not None and not isinstance(kwargs, Mapping):
            raise _no_inputs("example_kwargs", kwargs, "{'x': x}, a dict of arguments of forward by name")
        is_by_name = dynamic_shapes is None or isinstance(dynamic_shapes, Mapping)
        sizes = open_sizes(dynamic_shapes) if dynamic_shapes is not None and is_by_name else None
        others = None if is_by_name else checked_sizes_of_call(dynamic_shapes)
        given = (tuple(args or ()), kwargs or {}, sizes, freeze_control_flow, allow_code, None, training)
        state = checked_state(state)
        return cls(*given, signature or "", checked_fix(fix), state, checked_noise(noise), others, roll_loops)

    @property
    def has_sizes(self) -> bool:
        return self.dynamic_shapes is not None or self.sizes_of_call is not None

    @property
    def has_inputs(self) -> bool:
        return bool(self.args or self.kwargs)


def checked_noise(noise: object) -> str:
    """Returns what becomes of random numbers. Raises UsageError TM6002 for anything but the two ways."""
    if noise not in (None, "input", "operator"):
        raise UsageError("TM6002", f"noise must be 'input' or 'operator', got {type_and_value(noise)}")
    return "input" if noise == "input" else ""


def checked_state(state: object) -> tuple[str, ...]:
    """Returns the names of state. Raises UsageError TM6014 for anything but texts."""
    names: Any = () if state is None else state
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not all(isinstance(name, str) for name in names):
        message = f"state must be a list of names, got {type_and_value(state)}"
        raise UsageError("TM6014", message, notes=[("help", "write state=['encoder.cache'], or ['all']")])
    return tuple(names)


def checked_fix(fix: Mapping[str, int] | None) -> Mapping[str, int]:
    """Returns sizes by name. Raises UsageError TM6014 for anything but positive integers."""
    given = {} if fix is None else fix
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and type(size) is int and size > 0 for name, size in given.items()
    ):
        message = f"fix must have positive integers by the names of sizes, got {type_and_value(fix)}"
        raise UsageError("TM6014", message, notes=[("help", "write fix={'batch': 1} (--fix batch=1)")])
    return given


def checked_sizes_of_call(sizes: object) -> object:
    """Returns sizes by argument, or a collection of ``torch.export``. Raises UsageError TM6014 for others."""
    if isinstance(sizes, (tuple, list)) or callable(getattr(sizes, "dynamic_shapes", None)):
        return sizes
    raise _no_sizes("dynamic_shapes", sizes, "a dict by input, or a tuple or list by argument")


def open_sizes(dynamic_shapes: object) -> dict[str, dict[int, str]]:
    """Returns names of dynamic sizes by input and axis, from any form that ``torch.export`` accepts.

    The axes of an input are a dict by axis, or a list with an entry for each axis; those of a nested
    argument are a dict, list or tuple of such, and its inputs are named ``pair.0`` or ``pair.key``. A size is
    a name, a ``torch.export.Dim``, an expression of such (``"past+sequence"``, ``2*dim``), ``Dim.AUTO`` or
    ``Dim.DYNAMIC`` (which get a name), or None, a number or ``Dim.STATIC`` for a static one. Raises
    UsageError TM6014.

    >>> open_sizes({"x": {0: "batch"}, "pair": [None, {"k": ["batch", None]}]})
    {'x': {0: 'batch'}, 'pair.1.k': {0: 'batch'}}
    """
    if not isinstance(dynamic_shapes, Mapping):
        raise _no_sizes("dynamic_shapes", dynamic_shapes, "a dict by input")
    return {
        name: dict(_open_axes(name, axes))
        for top, given in dynamic_shapes.items()
        for name, axes in _by_tensor(top, given)
        if axes is not None
    }


def _by_tensor(name: str, given: object) -> Iterator[tuple[str, object]]:
    """Yields the axes of each tensor of an argument under its name."""
    pairs: list[tuple[Any, object]] = []
    if isinstance(given, (Mapping, list, tuple)):
        pairs = list(given.items()) if isinstance(given, Mapping) else list(enumerate(given))
    if not any(isinstance(each, (Mapping, list, tuple)) for _, each in pairs):
        yield name, given
        return
    for key, each in pairs:
        yield from _by_tensor(f"{name}.{key}", each)


def _open_axes(name: str, axes: object) -> Iterator[tuple[int, str]]:
    if not isinstance(axes, (Mapping, list, tuple)):
        raise _no_sizes(f"dynamic_shapes[{name!r}]", axes, "a dict by axis, or a list")
    for key, size in axes.items() if isinstance(axes, Mapping) else enumerate(axes):
        axis = int(key) if isinstance(key, str) and re.fullmatch("-?[0-9]{1,9}", key) else key
        if type(axis) is not int:
            raise _no_sizes(f"an axis in dynamic_shapes[{name!r}]", key, "a number")
        named = _size_name(size, f"{name}_{axis}".replace("-", "last_"))
        if named is not None:
            yield axis, named


def _size_name(size: object, automatic: str) -> str | None:
    """Returns the name of a dynamic size; None for a static one."""
    if size is None or type(size) is int:
        return None
    if isinstance(size, AutomaticSize):
        return size
    hint = getattr(getattr(size, "type", None), "name", "")  # of Dim.AUTO, Dim.DYNAMIC, Dim.STATIC
    if hint:
        automatic = re.sub(r"\W", "_", automatic)
        return None if hint == "STATIC" else (FreeSize if hint == "AUTO" else AutomaticSize)(automatic)
    name = getattr(size, "__name__", size)  # that of a Dim
    from tmconvert.ir.symbolic.text import RESERVED, is_size_expression, size_of

    if not isinstance(name, str) or not is_size_expression(name):
        is_reserved = isinstance(name, str) and name in RESERVED
        why = "it is a word of the text of graphs; " if is_reserved else ""
        other = f"such as {name}_size" if is_reserved else "of letters, digits and _"
        raise UsageError(
            "TM6014", f"{shown_value(name)} is not a valid name for a dimension: {why}use another, {other}"
        )
    return str(size_of(name, {}))


def _no_sizes(what: str, given: object, wanted: str) -> UsageError:
    return UsageError(
        "TM6014",
        f"{what} must be {wanted}, got {type_and_value(given)}",
        notes=[
            ("help", 'write dynamic_shapes={"x": {0: "batch"}}, with the names of the arguments of forward')
        ],
    )


def _no_inputs(what: str, given: object, wanted: str) -> UsageError:
    return UsageError("TM6008", f"{what} must be {wanted}, got {type_and_value(given)}")


def inputs_needed(signature: str = "") -> UsageError:
    """Returns the error for missing example inputs, with ``signature``, such as ``forward(x)``, if known."""
    return UsageError(
        "TM6008",
        "tracing a PyTorch module requires example inputs",
        notes=[
            *([("it has", signature)] if signature else []),
            (
                "help",
                "pass example_inputs=(x, ...) or example_kwargs={'x': x}; on the command line --input "
                "'float32[1,3,224,224]'",
            ),
        ],
    )


def no_module(missing: str, name: str) -> LoadError:
    """Returns the error for a factory, as in ``package.module:factory``, whose module cannot be found."""
    module = name.partition(":")[0]
    return LoadError(
        "TM1022",
        f"the module {missing} was not found",
        notes=[
            ("looked in", f"the current folder ({Path.cwd()}) and the packages of this Python"),
            ("help", f"use a name with which `import {module}` works in the current folder"),
        ],
    )
