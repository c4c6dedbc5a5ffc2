"""Builds the adapters of several forms of one call."""

from __future__ import annotations

import inspect
from typing import Any

from tmconvert.frontends.shared.vocabulary import Adapter
from tmconvert.frontends.torch.adapters.values import cast, dtype_called, is_tensor
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.op import Attribute, Op

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
    "axis0": ("dim0",),
    "axis1": ("dim1",),
    "size": ("shape",),
    "split_size": ("split_size_or_sections",),
    "tensor_indices_or_sections": ("indices_or_sections",),
    "other": ("B",),
    "element": ("elements",),
    "test_element": ("test_elements",),
    "physical_layout": ("stride",),
}


DROPPED = frozenset({"out", "_stacklevel"})  # what has no part in what is computed


def generic(op: Op) -> Adapter:
    """Returns the adapter of an op of the catalogue that has the same arguments as the call.

    Numbers in place of a tensor become constants of the first tensor's type. If the op has no parameter
    ``dtype``, its operand is cast to that type. A tensor of rank 0 counts as one of rank 1.
    """
    arguments = list(op.args)
    names = [argument.name for argument in arguments]

    def adapter(g, *args, **kwargs):
        if len(args) > len(arguments):
            raise TypeError(f"takes {len(arguments)} arguments, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in DROPPED:
                given[ALIASES.get(name, name)] = value
        first = next((name for name, value in given.items() if is_tensor(value)), None)
        dtype = given.pop("dtype", None)
        if dtype is not None and "dtype" in names:
            given["dtype"] = dtype_called(dtype).name
        elif dtype is not None and first is not None:
            given[first] = cast(g, given[first], dtype_called(dtype))
        for argument in arguments:
            value = given.get(argument.name)
            if not isinstance(argument, Attribute) and isinstance(value, (bool, int, float)):
                given[argument.name] = g.constant(
                    value, None if first is None else g.type(given[first]).dtype
                )
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(f"does not take {', '.join(sorted(unknown))}")
        if first is not None and given.get("dim") in (0, -1) and not g.type(given[first]).rank:
            return _without_axes(g, op, given)
        return g.call(op.name, **given)

    return adapter


def _without_axes(g: Emitter, op: Op, given: dict[str, Any]) -> Any:
    """Applies the op to tensors of rank 0, along a single axis of extent 1."""

    def lifted(value):
        return g.call("aten::reshape", value, [1]) if is_tensor(value) and not g.type(value).rank else value

    result = g.call(op.name, **{name: lifted(value) for name, value in given.items()})
    parts = result if isinstance(result, (list, tuple)) else [result]
    lowered = [g.call("aten::reshape", part, []) if g.type(part).shape == (1,) else part for part in parts]
    return lowered if isinstance(result, (list, tuple)) else lowered[0]


def called(adapter: Adapter) -> Adapter:
    """Returns the adapter with arguments under all names that torch has for them, and without ``out``."""
    own = inspect.signature(adapter).parameters
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in own.values()):
        return adapter

    def fitting(name: str) -> str:
        return name if name in own else next((other for other in OTHERS.get(name, ()) if other in own), name)

    def renamed(g, *args, **kwargs):
        given = {fitting(name): value for name, value in kwargs.items() if name != "out"}
        return adapter(g, *args, **given)

    return renamed


def in_place(adapter: Adapter) -> Adapter:
    """Returns the adapter of the in-place form: the result has the operand's type and shape."""

    def written(g, x, *args, **kwargs):
        result = adapter(g, x, *args, **kwargs)
        if not is_tensor(result):
            return result
        type_ = g.type(x)
        result = cast(g, result, type_.dtype)
        if g.type(result).rank < type_.rank:
            result = g.call("aten::expand", result, list(type_.shape))
        return result

    return written
