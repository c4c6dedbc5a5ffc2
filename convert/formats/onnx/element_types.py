"""Element types of ONNX, and the ones that stand for them in a graph.

Integers of 2 and 4 bits are held in 8, and bfloat16 and narrower floats in float32, as for models of PyTorch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class ElementType(NamedTuple):
    """``stored_name`` is the name in NumPy or ml_dtypes of the type in a file; ``dtype`` is the type in a
    graph; ``bits`` are those of an element, of which the file has several in a byte if they are less than 8.
    """

    name: str
    stored_name: str
    dtype: np.dtype
    bits: int

    @property
    def stored(self) -> np.dtype:
        """The type in a file, with one element in a byte or more."""
        if self.dtype.name != self.stored_name:
            import ml_dtypes  # noqa: F401  (the package that teaches NumPy the names)
        return np.dtype(self.stored_name)

    @property
    def is_widened(self) -> bool:
        return self.dtype.itemsize * 8 != self.bits and self.dtype.kind == "f"


def _same(name: str, dtype: str) -> ElementType:
    return ElementType(name, dtype, np.dtype(dtype), np.dtype(dtype).itemsize * 8)


def _wide(name: str, stored: str, bits: int = 8) -> ElementType:
    return ElementType(name, stored, np.dtype(np.float32), bits)


# by the numbers of TensorProto.DataType in onnx.proto
ELEMENT_TYPES: dict[int, ElementType] = {
    1: _same("float", "float32"),
    2: _same("uint8", "uint8"),
    3: _same("int8", "int8"),
    4: _same("uint16", "uint16"),
    5: _same("int16", "int16"),
    6: _same("int32", "int32"),
    7: _same("int64", "int64"),
    9: _same("bool", "bool"),
    10: _same("float16", "float16"),
    11: _same("double", "float64"),
    12: _same("uint32", "uint32"),
    13: _same("uint64", "uint64"),
    16: _wide("bfloat16", "bfloat16", 16),
    17: _wide("float8e4m3fn", "float8_e4m3fn"),
    18: _wide("float8e4m3fnuz", "float8_e4m3fnuz"),
    19: _wide("float8e5m2", "float8_e5m2"),
    20: _wide("float8e5m2fnuz", "float8_e5m2fnuz"),
    21: ElementType("uint4", "uint4", np.dtype("uint8"), 4),
    22: ElementType("int4", "int4", np.dtype("int8"), 4),
    23: ElementType("float4e2m1", "float4_e2m1fn", np.dtype("float32"), 4),
    24: _wide("float8e8m0", "float8_e8m0fnu"),
    25: ElementType("uint2", "uint2", np.dtype("uint8"), 2),
    26: ElementType("int2", "int2", np.dtype("int8"), 2),
}
# why the others are not read
REFUSED_TYPES = {8: "strings", 14: "complex numbers", 15: "complex numbers"}


def type_name(number: int) -> str:
    """Returns the name of an element type in NumPy or ml_dtypes; empty for one that is not known."""
    if number in ELEMENT_TYPES:
        return ELEMENT_TYPES[number].stored_name
    return {8: "object", 14: "complex64", 15: "complex128"}.get(number, "")
