"""Arrays of TensorProtos. Source of the format: onnx.proto (TensorProto)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.formats.onnx.element_types import ELEMENT_TYPES, REFUSED_TYPES, ElementType
from tmconvert.formats.onnx.external_data import EXTERNAL, ExternalFiles
from tmconvert.formats.onnx.faults import damaged, unknown_part

MAX_RANK = 64
LARGEST_DENSE = 1 << 28  # elements of a sparse tensor, which is stored with its zeros
# the field of each type where a tensor has no raw data; types that are not named are in int32_data
_FIELDS = {
    "float": "float_data",
    "int64": "int64_data",
    "double": "double_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}


class TensorReader:
    """Reads the tensors of the model file ``path``; external data are mapped, once for each file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files = ExternalFiles(path)

    def array(self, proto: Any, place: str = "") -> np.ndarray:
        """Returns the array of a TensorProto; read-only. Raises LoadError TM1031, TM1032 or TM1033."""
        place = place or f"tensor {proto.name}"
        type_, shape = self._type_and_shape(proto, place)
        if proto.data_location == EXTERNAL:
            data: Any = self._files.content(proto, _size(type_, shape), place)
        elif proto.HasField("raw_data"):
            data = proto.raw_data
        else:
            return self._of_fields(proto, type_, shape, place)
        return self._of_bytes(data, type_, shape, place)

    def stored_array(self, proto: Any) -> np.ndarray:
        """Returns the array of a TensorProto in the type of the file. Raises LoadError as ``array`` does.

        >>> TensorReader("net.onnx").stored_array(proto).dtype  # doctest: +SKIP
        dtype(bfloat16)
        """
        return self.array(proto).astype(self.type(proto.data_type, "").stored, copy=False)

    def external(self, proto: Any) -> memoryview:
        """Returns the external data of a TensorProto. Raises LoadError TM1031, TM1032 or TM1033."""
        place = f"tensor {proto.name}"
        return self._files.content(proto, _size(*self._type_and_shape(proto, place)), place)

    def _type_and_shape(self, proto: Any, place: str) -> tuple[ElementType, tuple[int, ...]]:
        """Returns the element type and the shape of a TensorProto."""
        type_, shape = self.type(proto.data_type, place), tuple(proto.dims)
        if len(shape) > MAX_RANK or any(extent < 0 for extent in shape):
            raise damaged(self.path, f"a tensor has the shape {shape}"[:200], place)
        return type_, shape

    def sparse(self, proto: Any, place: str) -> np.ndarray:
        """Returns the dense array of a SparseTensorProto. Raises LoadError TM1031, TM1032 or TM1033."""
        shape = tuple(proto.dims)
        if not 0 < len(shape) <= MAX_RANK or any(extent < 0 for extent in shape):
            raise damaged(self.path, f"a sparse tensor has the shape {shape}"[:200], place)
        if math.prod(shape) > LARGEST_DENSE:
            what = f"a sparse tensor of {math.prod(shape)} elements would be stored with its zeros"
            raise unknown_part(self.path, what, "make it smaller, or split it", place)
        values = self.array(proto.values, place)
        indices = self.array(proto.indices, place) if values.size else np.zeros(0, np.int64)
        if values.ndim != 1 or indices.dtype != np.int64:
            raise damaged(self.path, "the values or indices of a sparse tensor are of another kind", place)
        if indices.shape not in ((values.size,), (values.size, len(shape))):
            raise damaged(self.path, f"a sparse tensor has indices of shape {indices.shape}", place)
        limits = np.array(shape if indices.ndim == 2 else math.prod(shape))
        if not ((indices >= 0) & (indices < limits)).all():
            raise damaged(self.path, "an index of a sparse tensor is outside of it", place)
        dense = np.zeros(shape, values.dtype)
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
        return dense

    def type(self, number: int, place: str) -> ElementType:
        """Returns the element type of a number in the file. Raises LoadError TM1033."""
        if number in ELEMENT_TYPES:
            return ELEMENT_TYPES[number]
        if number in REFUSED_TYPES:
            what = f"the model has {REFUSED_TYPES[number]}, which no target of tmconvert stores"
            raise unknown_part(self.path, what, "use tensors of floats, integers or bools", place)
        raise damaged(self.path, f"{number} is not an element type", place)

    def _of_bytes(self, data: Any, type_: ElementType, shape: Sequence[int], place: str) -> np.ndarray:
        count, size = math.prod(shape), _size(type_, shape)
        if len(data) != size:
            raise damaged(self.path, f"a tensor needs {size} bytes, but has {len(data)}", place)
        if type_.bits < 8:
            return _unpacked(np.frombuffer(data, np.uint8), type_, count).reshape(shape)
        array = np.frombuffer(data, type_.stored.newbyteorder("<"), count)
        return array.astype(type_.dtype, copy=False).reshape(shape)

    def _of_fields(self, proto: Any, type_: ElementType, shape: Sequence[int], place: str) -> np.ndarray:
        values = getattr(proto, _FIELDS.get(type_.name, "int32_data"))
        count = math.prod(shape)
        if type_.bits < 8:
            packed = np.asarray(values, np.int32).astype(np.uint8)
            if packed.size != _size(type_, shape):
                raise damaged(
                    self.path, f"a packed tensor of {count} elements has {packed.size} bytes", place
                )
            return _unpacked(packed, type_, count).reshape(shape)
        if len(values) != count:
            raise damaged(self.path, f"a tensor needs {count} elements, but has {len(values)}", place)
        if type_.name == "float16" or type_.is_widened:  # bits of the number, in an integer
            bits = np.asarray(values, np.int32).astype(f"uint{type_.bits}")
            return bits.view(type_.stored).astype(type_.dtype, copy=False).reshape(shape)
        return np.asarray(values).astype(type_.dtype).reshape(shape)


def _size(type_: ElementType, shape: Sequence[int]) -> int:
    """Returns the number of bytes of a tensor."""
    return (math.prod(shape) * type_.bits + 7) // 8


def _unpacked(packed: np.ndarray, type_: ElementType, count: int) -> np.ndarray:
    """Returns numbers of less than 8 bits, of which the first of a byte is in its lowest bits."""
    mask, sign = (1 << type_.bits) - 1, 1 << (type_.bits - 1)
    places = np.arange(0, 8, type_.bits, dtype=np.uint8)
    bits = ((packed[:, None] >> places) & mask).reshape(-1)[:count]
    if type_.dtype.kind == "f":
        return _FLOATS4[bits]
    return bits if type_.dtype.kind == "u" else ((bits ^ sign).astype(np.int8) - sign).astype(np.int8)


_FLOATS4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
