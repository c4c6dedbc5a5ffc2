"""How one adapter serves several forms of a call."""

from __future__ import annotations

import inspect
from typing import Any

from ....ir.emitter import Emitter
from ....symbolics.op import Attribute, Op
from ...vocabulary import Adapter
from .values import cast, dtype_called, is_tensor

# NumPy's words, which torch takes as well
ALIASES = {
    "axis": "dim",
    "axes": "dims",
    "keepdims": "keepdim",
    "input": "x",
    "self": "x",
    "x1": "x",
    "x2": "other",
}

# what an adapter may call what torch's users call so
OTHERS = {
    "axis": ("dim", "dims"),
    "axes": ("dims", "dim"),
    "keepdims": ("keepdim",),
    "input": ("self", "x"),
    "self": ("input", "x"),
    "x": ("input", "self"),
    "x1": ("input", "self"),
    "x2": ("other",),
}


def generic(op: Op) -> Adapter:
    """The adapter of an op of the catalogue: its arguments are those of the call.

    Numbers in a tensor's place become constants of the first tensor's type.
    """
    arguments = list(op.args)

    def adapter(g: Emitter, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip((argument.name for argument in arguments), args, strict=False))
        if len(args) > len(arguments):
            raise TypeError(f"takes {len(arguments)} arguments, {len(args)} were given")
        for name, value in kwargs.items():
            given[ALIASES.get(name, name)] = value
        given.pop("out", None)
        first = next((value for value in given.values() if is_tensor(value)), None)
        for argument in arguments:
            value = given.get(argument.name)
            if not isinstance(argument, Attribute) and isinstance(value, (bool, int, float)):
                given[argument.name] = g.constant(value, None if first is None else g.type(first).dtype)
            elif argument.name == "dtype" and value is not None:
                given["dtype"] = dtype_called(value).name
        return g.call(op.name, **_in_order(g, op, given))

    return adapter


def _in_order(g: Emitter, op: Op, given: dict[str, Any]) -> dict[str, Any]:
    unknown = set(given) - {argument.name for argument in op.args}
    if unknown:
        raise TypeError(f"takes no {', '.join(sorted(unknown))}")
    return given


def called(adapter: Adapter) -> Adapter:
    """The adapter with arguments under any of torch's names for them, and without ``out``."""
    own = inspect.signature(adapter).parameters
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in own.values()):
        return adapter

    def fitting(name: str) -> str:
        return name if name in own else next((other for other in OTHERS.get(name, ()) if other in own), name)

    def renamed(g: Emitter, *args: Any, **kwargs: Any) -> Any:
        given = {fitting(name): value for name, value in kwargs.items() if name != "out"}
        return adapter(g, *args, **given)

    return renamed


def in_place(adapter: Adapter) -> Adapter:
    """The adapter of the form that writes to its operand: the result has the operand's type and shape."""

    def written(g: Emitter, x: Any, *args: Any, **kwargs: Any) -> Any:
        result = adapter(g, x, *args, **kwargs)
        if not is_tensor(result):
            return result
        type_ = g.type(x)
        result = cast(g, result, type_.dtype)
        if g.type(result).rank < type_.rank:
            result = g.call("aten::expand", result, list(type_.shape))
        return result

    return written
