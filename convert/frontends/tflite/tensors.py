"""Arrays and quantization parameters of tensors."""

from __future__ import annotations

import math
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tmconvert.formats.tflite.schema import TENSOR_TYPES
from tmconvert.frontends.shared.recorded_qparams import integers_of_range
from tmconvert.frontends.tflite.faults import damaged, unknown_part
from tmconvert.frontends.tflite.records import QuantizationRecord, TensorRecord
from tmconvert.frontends.tflite.sparse import Sparsity, dense
from tmconvert.ir import QParams
from tmconvert.ir.fake_quant import with_qparams

INT4 = 17
SOURCE = "TFLite"
_HELP = "convert the model with tensors of float, integer or bool"
COMPLEX = 8  # a result inside of a model, and nothing else
_REFUSED = {5: "strings", 11: "complex numbers", 13: "resources", 14: "variants"}
_RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int4": (-8, 7),
}


class ElementType(NamedTuple):
    """``stored`` is the type in a file, ``dtype`` the one in a graph; ``bits`` are those of an element."""

    name: str
    stored: np.dtype
    dtype: np.dtype
    bits: int


def _types() -> dict[int, ElementType]:
    found = {INT4: ElementType("int4", np.dtype(np.uint8), np.dtype(np.int8), 4)}
    for name, code in TENSOR_TYPES.items():
        if code in _REFUSED or code == COMPLEX:
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

        Raises LoadError TM1041 or TM1042.
        """
        if record.type in TYPES:
            return TYPES[record.type]
        if record.type == COMPLEX and is_inside:
            return ElementType("complex64", np.dtype(np.complex64), np.dtype(np.complex64), 64)
        if record.type in _REFUSED or record.type == COMPLEX:
            kind = _REFUSED.get(record.type, "complex numbers at its ends")
            what = f"the model has {kind}, which no target of tmconvert stores"
            raise unknown_part(self.path, what, _HELP, record.name)
        what = f"the model has tensors of the element type {record.type}, which is not read"
        raise unknown_part(self.path, what, _HELP, record.name)

    def qparams(self, record: TensorRecord, *, is_constant: bool = False) -> QParams | None:
        """Returns the quantization parameters of a tensor of integers; None without, and for int64."""
        said, name = record.quantization, self.type(record, is_inside=True).name
        if said is None or name not in _RANGES:
            return None
        low, high = _RANGES[name]
        axis = said.axis if len(said.scale) > 1 else None
        is_symmetric = not any(said.zero_point) and name != "uint8"
        type_ = integers_of_range(low, high)
        qparams = QParams(type_, said.scale, said.zero_point, low, high, axis, is_symmetric, source=SOURCE)
        problem = qparams.problem(record.example, record.name or "a tensor")
        if problem and not is_constant:
            raise damaged(self.path, problem, record.name)
        return None if problem else qparams

    def array(self, record: TensorRecord) -> np.ndarray:
        """Returns the array of a constant: of quantized integers the real numbers, with QParams.

        Raises LoadError TM1041 or TM1042.
        """
        type_, count = self.type(record), math.prod(record.example)
        content = memoryview(b"") if record.content is None else record.content
        if record.sparsity is not None:
            return self._dense(record, type_, content, record.sparsity)
        size = (count * type_.bits + 7) // 8
        if len(content) != size:
            raise damaged(self.path, f"a tensor needs {size} bytes, but has {len(content)}", record.name)
        if type_.bits == 4:
            packed = np.frombuffer(content, np.uint8)
            array = (np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)[:count] ^ 8).astype(
                np.int8
            ) - 8
            array = array.astype(np.int8).reshape(record.example)
        else:
            array = np.frombuffer(content, type_.stored.newbyteorder("<"), count)
            array = array.astype(type_.dtype, copy=False).reshape(record.example)
        return self._quantized(record, array)

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
            return self._quantized(record, dense(values, record.example, sparsity))
        except ValueError as error:
            raise damaged(self.path, str(error), record.name) from error

    def _quantized(self, record: TensorRecord, array: np.ndarray) -> np.ndarray:
        said = record.quantization
        return array if said is None or array.dtype.kind == "f" else self._real(record, array, said)

    def _real(self, record: TensorRecord, array: np.ndarray, said: QuantizationRecord) -> np.ndarray:
        shape = [1] * array.ndim
        if len(said.scale) > 1:
            if not 0 <= said.axis < array.ndim or array.shape[said.axis] != len(said.scale):
                cause = f"a tensor of shape {array.shape} has {len(said.scale)} scales on axis {said.axis}"
                raise damaged(self.path, cause, record.name)
            shape[said.axis] = -1
        kind = np.float64 if array.dtype.itemsize > 2 else np.float32
        steps = array.astype(kind)
        if any(said.zero_point):
            steps -= np.array(said.zero_point, kind).reshape(shape)
        steps *= np.array(said.scale, kind).reshape(shape)
        real = steps.astype(np.float32, copy=False)
        qparams = self.qparams(record, is_constant=True)
        return real if qparams is None else with_qparams(real, qparams)
