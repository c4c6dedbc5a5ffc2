"""Integer types of ONNX: which type stores a tensor's quantized values, and from which opset on."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.types import QParams

SINCE, _NEWEST = 10, 21
# the ends of a type, and the opset that brought it to QuantizeLinear
_TYPES = {
    "int8": (-128, 127, SINCE),
    "uint8": (0, 255, SINCE),
    "int16": (-32768, 32767, _NEWEST),
    "uint16": (0, 65535, _NEWEST),
}
# Weights alone are of four bits: ONNX Runtime takes the pairs around a MaxPool away, which then fails.
_SMALL = {"int4": (-8, 7, _NEWEST), "uint4": (0, 15, _NEWEST)}
_DTYPES = {"int4": np.dtype(ml_dtypes.int4), "uint4": np.dtype(ml_dtypes.uint4)}
_SUMS = np.iinfo(np.int16)  # of two products
_PARTS = 256  # of a step of eight bits, in 16


def dtype_of(name: str) -> np.dtype:
    return _DTYPES.get(name) or np.dtype(name)


def lowest_opset(dtype: str) -> int:
    """Returns the opset from which on QuantizeLinear has the type.

    >>> lowest_opset("uint16")
    21
    """
    return _TYPES[dtype][2]


def stored_type(qparams: QParams, opset: int, *, is_weight: bool = False) -> str | None:
    """Returns the narrowest type of the opset that represents the range; None where none does."""
    types = {**_SMALL, **_TYPES} if is_weight else _TYPES
    for name, (low, high, since) in types.items():
        if since <= opset and low <= qparams.quant_min and qparams.quant_max <= high:
            return name
    return None


def activation_qparams(name: str, qparams: QParams, requested: str, opset: int) -> QParams:
    """Returns the QParams of an activation in the requested type, or in 16 bits where the source has them.

    Between 8-bit types only the zero point changes; in 16 bits one step of an 8-bit type becomes 256 steps.
    Raises Refusal, whose message names the tensor ``name``.
    """
    found = stored_type(qparams, _NEWEST)
    if found is None or len(qparams.scale) != 1:
        raise lacking_type(name, qparams, _NEWEST)
    wanted = requested if found.endswith("8") else f"{'u' if requested.startswith('u') else ''}int16"
    if opset < _TYPES[wanted][2]:
        raise lacking_type(name, qparams, opset)
    if found.endswith("8") and wanted.endswith("16"):
        eight = wanted.replace("16", "8")
        return _to_16_bits(_shift(qparams, _TYPES[eight][0] - _TYPES[found][0]), wanted)
    return replace(_shift(qparams, _TYPES[wanted][0] - _TYPES[found][0]), dtype=wanted)


def lacking_type(name: str, qparams: QParams, opset: int) -> Refusal:
    """Raises the error that no type of the opset can store the tensor ``name``."""
    if opset < _NEWEST and (len(qparams.scale) == 1 or stored_type(qparams, _NEWEST, is_weight=True)):
        help = f"use --opset {_NEWEST} or later"
        return Refusal(f"{name} needs 16-bit integers, which ONNX supports from opset {_NEWEST} on", help)
    return Refusal(
        f"{name} has quantization parameters that no per-tensor 16-bit type can represent", "keep it in float"
    )


def unsigned_qparams(qparams: QParams) -> QParams:
    """Converts int8 QParams to uint8 ones for the same real values, 128 higher."""
    return replace(_shift(qparams, 128), dtype="uint8")


def saturates(weights: np.ndarray, activations: QParams | None = None) -> bool:
    """Whether x86 kernels without VNNI may overflow for sums of products with int8 ``weights``.

    They add two products of an unsigned and a signed byte in 16 bits (``vpmaddubsw``), which hold all sums of
    weights from -64 to 64. ``activations`` are the QParams of the other operand, None if it may have all
    values of a byte; kernels convert int8 to uint8 by adding 128. Operands of 16 bits are computed in float.
    """
    largest = 255
    if activations is not None and activations.dtype.endswith("8"):
        largest = activations.quant_max + (0 if activations.dtype == "uint8" else 128)
    elif activations is not None:
        return False
    low, high = int(np.min(weights, initial=0)), int(np.max(weights, initial=0))
    return 2 * high * largest > _SUMS.max or 2 * low * largest < _SUMS.min


def _shift(qparams: QParams, shift: int) -> QParams:
    return replace(
        qparams,
        zero_point=tuple(each + shift for each in qparams.zero_point),
        quant_min=qparams.quant_min + shift,
        quant_max=qparams.quant_max + shift,
    )


def _to_16_bits(qparams: QParams, dtype: str) -> QParams:
    return replace(
        qparams,
        dtype=dtype,
        scale=(qparams.scale[0] / _PARTS,),
        zero_point=(qparams.zero_point[0] * _PARTS,),
        quant_min=qparams.quant_min * _PARTS,
        quant_max=qparams.quant_max * _PARTS + _PARTS - 1,
    )


def limits(qparams: QParams) -> tuple[float, float] | None:
    """Returns the ends of a range that is narrower than its type by more than the outermost steps."""
    low, high, _ = _TYPES[qparams.dtype]
    margin = (high - low) // 255
    if qparams.quant_min <= low + margin and qparams.quant_max >= high - margin:
        return None
    first, last = (
        (end - qparams.zero_point[0]) * qparams.scale[0] for end in (qparams.quant_min, qparams.quant_max)
    )
    return first, last
