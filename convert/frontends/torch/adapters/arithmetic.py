"""Elementwise arithmetic, with torch's promotion of types."""

from __future__ import annotations

from typing import Any

from ....errors import Refusal
from ....ir.emitter import Emitter
from ...table import Table
from .values import cast, dtype_called, floating, kind_of, promoted

ATEN = Table()


def _declare(name: str, *names: str, to_float: bool = False) -> None:
    """An op of two operands, and the operators of Python that mean it."""

    def adapter(g: Emitter, input: Any, other: Any) -> Any:
        return g.call(f"aten::{name}", *promoted(g, input, other, to_float=to_float))

    ATEN.add(name, *names)(adapter)


for _name, _words in {
    "mul": ("multiply", "__mul__", "__rmul__"),
    "maximum": (),
    "minimum": (),
    "eq": ("__eq__", "equal_elements"),
    "ne": ("not_equal", "__ne__"),
    "lt": ("less", "__lt__"),
    "le": ("less_equal", "__le__"),
    "gt": ("greater", "__gt__"),
    "ge": ("greater_equal", "__ge__"),
}.items():
    _declare(_name, *_words)


@ATEN.add("add", "__add__", "__radd__")
def add(g: Emitter, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    x, y = promoted(g, input, other)
    if alpha != 1:
        y = g.call("aten::mul", y, g.constant(alpha, g.type(y).dtype))
    return g.call("aten::logical_or" if g.type(x).dtype.kind == "b" else "aten::add", x, y)


@ATEN.add("sub", "subtract", "__sub__")
def sub(g: Emitter, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    x, y = promoted(g, input, other)
    if alpha != 1:
        y = g.call("aten::mul", y, g.constant(alpha, g.type(y).dtype))
    return g.call("aten::sub", x, y)


@ATEN.add("rsub", "__rsub__")
def rsub(g: Emitter, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return sub(g, other, input, alpha=alpha)


@ATEN.add("div", "true_divide", "divide", "__div__", "__truediv__")
def div(g: Emitter, input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    x, y = promoted(g, input, other, to_float=rounding_mode is None)
    if rounding_mode is None:
        return g.call("aten::div", x, y)
    ops = {"floor": "aten::floor_divide", "trunc": "tm::trunc_divide"}
    if rounding_mode not in ops:
        raise Refusal(f"div with rounding_mode={rounding_mode!r} is not supported")
    return g.call(ops[rounding_mode], x, y)


@ATEN.add("__rdiv__", "__rtruediv__")
def rdiv(g: Emitter, input: Any, other: Any) -> Any:
    return div(g, other, input)


@ATEN.add("to")
def to(g: Emitter, input: Any, *args: Any, **kwargs: Any) -> Any:
    """``to(dtype)``, ``to(device)``, ``to(other)`` and their mixtures: only the element type matters."""
    for value in (*args, *kwargs.values()):
        if hasattr(value, "shape"):
            return cast(g, input, g.type(value).dtype)
        if hasattr(value, "module") and not str(value).endswith(("_format", "strided")):
            return cast(g, input, dtype_called(value))
    return input


for _name in ("float", "double", "half", "int", "long", "short", "bool", "bfloat16", "byte", "char"):
    _type = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64"}
    _type |= {"short": "int16", "byte": "uint8", "char": "int8"}

    def _cast(
        g: Emitter, input: Any, *, memory_format: Any = None, _dtype: str = _type.get(_name, _name)
    ) -> Any:
        return cast(g, input, dtype_called(_dtype))

    ATEN[_name] = _cast

__all__ = ["ATEN", "floating", "kind_of"]
