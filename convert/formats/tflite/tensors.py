"""Arrays of constants, as the file stores them."""

from __future__ import annotations

import math
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tmconvert.formats.tflite.faults import damaged, unknown_part
from tmconvert.formats.tflite.records import TensorRecord
from tmconvert.formats.tflite.schema import NARROW_BITS, OTHER_TYPES, TENSOR_TYPES
from tmconvert.formats.tflite.sparse import Sparsity, dense

COMPLEX64, COMPLEX128 = TENSOR_TYPES["complex64"], TENSOR_TYPES["complex128"]
_HELP = "convert the model with tensors of float, integer or bool"
_REFUSED = {OTHER_TYPES["str"]: "strings", COMPLEX128: "complex numbers", 13: "resources", 14: "variants"}


class ElementType(NamedTuple):
    """``stored`` is the type in a file, ``dtype`` the one in a graph; ``bits`` are those of an element."""

    name: str
    stored: np.dtype
    dtype: np.dtype
    bits: int


def _types() -> dict[int, ElementType]:
    found = {
        OTHER_TYPES[name]: ElementType(name, np.dtype(np.uint8), np.dtype(np.int8), bits)
        for name, bits in NARROW_BITS.items()
    }
    for name, code in TENSOR_TYPES.items():
        if code in (COMPLEX64, COMPLEX128):
            continue
        stored = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
        dtype = np.dtype(np.float32) if name == "bfloat16" else stored
        found[code] = ElementType(name, stored, dtype, stored.itemsize * 8)
    return found


TYPES = _types()


class TensorReader:
    """Reads the tensors of the file ``path``."""

    def __init__(self, path: str) -> None:
        self.path = path

    def type(self, record: TensorRecord, *, is_inside: bool = False) -> ElementType:
        """Returns the element type of a tensor, which may be complex where it ``is_inside`` of the model.

        Raises LoadError TM1042.
        """
        if record.type in TYPES:
            return TYPES[record.type]
        if record.type == COMPLEX64 and is_inside:
            return ElementType("complex64", np.dtype(np.complex64), np.dtype(np.complex64), 64)
        if record.type in _REFUSED or record.type == COMPLEX64:
            kind = _REFUSED.get(record.type, "complex numbers at its ends")
            what = f"the model has {kind}, which no target of tmconvert stores"
            raise unknown_part(self.path, what, _HELP, record.name)
        what = f"the model has tensors of the element type {record.type}, which is not read"
        raise unknown_part(self.path, what, _HELP, record.name)

    def stored_array(self, record: TensorRecord) -> np.ndarray:
        """Returns the elements of a constant in its shape: integers where it is quantized, with one in a byte
        where the file has several. Other arrays are views of the file where their type allows it.

        Raises LoadError TM1041 or TM1042.
        """
        if record.type == COMPLEX64:
            what = "the model has constants that are complex numbers, which are not read"
            raise unknown_part(self.path, what, _HELP, record.name)
        type_, count = self.type(record), math.prod(record.example)
        content = memoryview(b"") if record.content is None else record.content
        if record.sparsity is not None:
            return self._dense(record, type_, content, record.sparsity)
        size = (count * type_.bits + 7) // 8
        if len(content) != size:
            raise damaged(self.path, f"a tensor needs {size} bytes, but has {len(content)}", record.name)
        if type_.bits < 8:
            return _unpacked(np.frombuffer(content, np.uint8), type_.bits)[:count].reshape(record.example)
        array = np.frombuffer(content, type_.stored.newbyteorder("<"), count)
        return array.astype(type_.dtype, copy=False).reshape(record.example)

    def _dense(
        self, record: TensorRecord, type_: ElementType, content: memoryview, sparsity: Sparsity
    ) -> np.ndarray:
        if type_.bits < 8:
            what = f"the model has sparse tensors of {type_.name}, which are not read"
            raise unknown_part(self.path, what, "store them as dense tensors", record.name)
        if len(content) % type_.stored.itemsize:
            raise damaged(self.path, f"a sparse tensor has {len(content)} bytes", record.name)
        try:
            values = np.frombuffer(content, type_.stored.newbyteorder("<")).astype(type_.dtype, copy=False)
            return dense(values, record.example, sparsity)
        except ValueError as error:
            raise damaged(self.path, str(error), record.name) from error


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Returns the signed integers of some bits in bytes, from the lowest bits on.

    >>> _unpacked(np.array([0xF1], np.uint8), 4)
    array([ 1, -1], dtype=int8)
    """
    high = np.arange(8 - bits, -1, -bits, dtype=np.uint8)  # shifts that move each to the highest bits
    found: np.ndarray = (packed[:, None] << high).reshape(-1).view(np.int8) >> (8 - bits)
    return found
