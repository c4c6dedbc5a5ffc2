"""Conversions of the element type."""

from __future__ import annotations

from typing import Any

from ....ir.emitter import Emitter
from ....ir.inert import GlobalRef
from ...table import Table
from .values import cast, dtype_called, is_tensor, typed

ATEN = Table()


@ATEN.add("to")
def to(g: Emitter, input: Any, *args: Any, **kwargs: Any) -> Any:
    """``to(dtype)``, ``to(device)``, ``to(other)`` and their mixtures: only the element type matters."""
    for value in (*args, *kwargs.values()):
        if is_tensor(value):
            return cast(g, input, g.type(value).dtype)
        if isinstance(value, GlobalRef) and not value.name.endswith(("_format", "strided")):
            return cast(g, input, dtype_called(value))
    return input


@ATEN.add("_to_copy")
def to_copy(g: Emitter, input: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    return typed(g, input, dtype)


@ATEN.add("type_as")
def type_as(g: Emitter, input: Any, other: Any) -> Any:
    return cast(g, input, g.type(other).dtype)


_TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}

for _name, _dtype in _TYPES.items():

    def _cast(g: Emitter, input: Any, *, memory_format: Any = None, _dtype: str = _dtype) -> Any:
        return cast(g, input, dtype_called(_dtype))

    ATEN[_name] = _cast


@ATEN.add("type")
def type_(g: Emitter, input: Any, dtype: Any, non_blocking: bool = False) -> Any:
    """``dtype`` is one, or the name or class of an old kind of tensor: ``"torch.LongTensor"``."""
    name = dtype.name if isinstance(dtype, GlobalRef) else str(dtype)
    if name.endswith("Tensor"):
        own = name.rpartition(".")[2].removesuffix("Tensor").lower()
        return cast(g, input, dtype_called(_TYPES.get(own, "float32")))
    return typed(g, input, dtype)
