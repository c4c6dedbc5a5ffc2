"""Quantization parameters of tensors, and real numbers of quantized constants."""

from __future__ import annotations

import numpy as np

from tmconvert.formats.tflite import tensors
from tmconvert.formats.tflite.faults import damaged
from tmconvert.formats.tflite.records import QuantizationRecord, TensorRecord
from tmconvert.frontends.shared.recorded_qparams import integers_of_range
from tmconvert.ir import QParams
from tmconvert.ir.fake_quant import IntegerMatrix, with_integers, with_qparams

SOURCE = "TFLite"
_RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int4": (-8, 7),
    "int2": (-2, 1),
}


class TensorReader(tensors.TensorReader):
    """Reads the tensors of the file ``path``, with their quantization parameters."""

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
        """Returns the array of a constant: of quantized integers the real numbers, with QParams, or
        with their blocks.

        Raises LoadError TM1041 or TM1042.
        """
        array, quantization = self.stored_array(record), record.quantization
        if record.blocks is not None:
            scale = record.blocks.scales(record.example)
            made = IntegerMatrix(array.reshape(-1, array.shape[-1]), scale.reshape(-1, scale.shape[-1]))
            return with_integers(made.restored().reshape(array.shape), made)
        if quantization is None or array.dtype.kind == "f":
            return array
        return self._real(record, array, quantization)

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
