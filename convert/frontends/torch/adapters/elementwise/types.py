"""Element type conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.elementwise.complex import of_real, part_type
from tmconvert.frontends.torch.adapters.values import cast, dtype_called, is_tensor
from tmconvert.ir.complex_values import Complex
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.inert import GlobalRef

ATEN = Table()
# memory formats and layouts, which say nothing of the elements
FORMATS = frozenset({"contiguous_format", "preserve_format", "channels_last", "channels_last_3d", "strided"})


def converted(g: Emitter, x, dtype: np.dtype) -> Any:
    """Returns ``x`` with the element type ``dtype``; complex tensors lose their imaginary part."""
    if dtype.kind != "c":
        return cast(g, x.real if isinstance(x, Complex) else x, dtype)
    if not isinstance(x, Complex):
        return of_real(g, x, dtype)
    return Complex(*(cast(g, part, part_type(dtype)) for part in (x.real, x.imag)))


def _type_of(g: Emitter, x) -> np.dtype:
    if isinstance(x, Complex):
        return np.result_type(g.type(x.real).dtype, np.complex64)
    return g.type(x).dtype


@ATEN.add("to", "_to_copy")
def to(g, input, *args, **kwargs):
    """``to(dtype)``, ``to(device)``, ``to(other)`` and combinations: only the element type matters."""
    for value in (*args, *kwargs.values()):
        if is_tensor(value) or isinstance(value, Complex):
            return converted(g, input, _type_of(g, value))
        if isinstance(value, GlobalRef) and value.name not in FORMATS:
            return converted(g, input, dtype_called(value))
    return input


ATEN.add("type_as")(lambda g, input, other: converted(g, input, _type_of(g, other)))


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
    "cfloat": "complex64",
    "cdouble": "complex128",
}

for _name, _dtype in _TYPES.items():

    def _cast(g: Emitter, input, *, memory_format=None, _dtype: str = _dtype) -> Any:
        return converted(g, input, dtype_called(_dtype))

    ATEN[_name] = _cast


@ATEN.add("type")
def type_(g, input, dtype, non_blocking=False):
    """``dtype`` is a dtype, or the name or class of a legacy tensor type: ``"torch.LongTensor"``."""
    name = dtype.name if isinstance(dtype, GlobalRef) else str(dtype)
    if name.endswith("Tensor"):
        own = name.rpartition(".")[2].removesuffix("Tensor").lower()
        return converted(g, input, dtype_called(_TYPES.get(own, "float32")))
    return converted(g, input, dtype_called(dtype))


COMPLEX = ATEN
