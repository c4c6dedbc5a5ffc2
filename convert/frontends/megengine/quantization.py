"""Converts MegEngine's quantization records to plain values and ``QParams``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.megengine.pickle.budget import native
from tmconvert.frontends.megengine.pickle.stand_ins import Instance, Tensor, quantization_of
from tmconvert.frontends.shared.recorded_qparams import integers_of_range
from tmconvert.ir import QParams
from tmconvert.ir.fake_quant import with_qparams

# the quantized dtypes that tensors have at run time: (name, smallest, largest)
DTYPES = {
    "QuantizedS8": ("int8", -128, 127),
    "Quantized8Asymm": ("uint8", 0, 255),
    "QuantizedS16": ("int16", -(2**15), 2**15 - 1),
    "QuantizedS32": ("int32", -(2**31), 2**31 - 1),
    "QuantizedS4": ("int4", -8, 7),
    "Quantized4Asymm": ("uint4", 0, 15),
    "QuantizedS1": ("int1", 0, 1),
}
MODES = {1: "symmetric", 2: "asymmetric"}


def qparams_of_dtype(dtype: object) -> QParams | None:
    """Returns the QParams in the metadata of a quantized dtype; None for a plain dtype."""
    quantization = quantization_of(dtype) if isinstance(dtype, np.dtype) else None
    if quantization is None or quantization.name not in DTYPES or quantization.scale is None:
        return None
    name, low, high = DTYPES[quantization.name]
    zero_point = quantization.zero_point or 0
    is_symmetric = quantization.zero_point is None
    return QParams(name, (quantization.scale,), (zero_point,), low, high, None, is_symmetric)


def qparams_of_record(record: object) -> QParams | None:
    """Returns the QParams recorded with a fake-quantized tensor; None without a complete record."""
    if not isinstance(record, Instance):
        return None
    found = plain(record)
    kind, scale = (found.get("dtype_meta"), found.get("scale")) if isinstance(found, dict) else (None, None)
    if not isinstance(kind, dict) or not isinstance(scale, Tensor) or scale.array.size != 1:
        return None
    low, high = kind.get("qmin"), kind.get("qmax")
    if not isinstance(low, int) or not isinstance(high, int) or not low < high:
        return None
    zero = found.get("zero_point")
    is_symmetric = not isinstance(zero, Tensor)
    zero_point = 0 if not isinstance(zero, Tensor) or zero.array.size != 1 else int(zero.array.reshape(-1)[0])
    scales = (float(scale.array.reshape(-1)[0]),)
    return QParams(integers_of_range(low, high), scales, (zero_point,), low, high, None, is_symmetric)


def real(tensor: Tensor) -> np.ndarray:
    """Returns a tensor's real values; a quantized one is dequantized.

    Invalid parameters stay attached to the array; the verifier reports them where it is used.
    """
    qparams = qparams_of_dtype(tensor.dtype)
    if qparams is None:
        return native(tensor.array)
    with np.errstate(all="ignore"):
        steps = tensor.array.astype(np.float32) - np.float32(qparams.zero_point[0])
        return with_qparams(np.asarray(steps * np.float32(qparams.scale[0])), qparams)


def plain(value: object) -> Any:
    """Returns a quantized dtype as QParams, a record as text or dict; other values unchanged."""
    if isinstance(value, np.dtype):
        return qparams_of_dtype(value) or value
    if not isinstance(value, Instance):
        return value
    if value.class_name == "megengine.quantization.utils.QuantMode":
        return MODES.get(value.state["value"], "unknown")
    if value.class_name == "megengine.core.tensor.dtype.QuantDtypeMeta":
        return {key: value.state[key] for key in ("name", "np_dtype_str", "qmin", "qmax")}
    if value.class_name in ("megengine.quantization.utils.QParams", "megengine.quantization.utils.LSQParams"):
        return {key: plain(value.state.get(key)) for key in ("mode", "dtype_meta", "scale", "zero_point")}
    return value
