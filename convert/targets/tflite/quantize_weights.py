"""Quantizes weights of TFLite to integers of 8, 4 or 2 bits, in the form that an operator's kernel reads.

Four bits have scales in blocks of 32 elements where a product reads them, which LiteRT does rightly since
2.1: its 1.4 to 2.0 take other scales in XNNPACK. Before, and elsewhere, there is one scale a channel. A
weight whose operator reads no such integers is stored in int8, which XNNPACK restores when it loads the file;
it would not restore int4, and leave the operator to the slow kernels. Measured with one operator a file in
LiteRT 1.2 to 2.3, with and without XNNPACK.
"""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np

from tmconvert.errors import UsageError
from tmconvert.formats.tflite.schema import NARROW_BITS
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.lowering.block_scales import ScaleRule, block_scales
from tmconvert.lowering.target_graph import Operator, Quantization, Value
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.tflite.operators import spec

BITS = {"int8": 8, **NARROW_BITS}
# the N of the oldest runtime 2.N that reads them, and the one that reads them in blocks
_SINCE, _BLOCKS_SINCE = {"int4": 19, "int2": 23}, 21
_BLOCK = 32  # elements; XNNPACK takes multiples of it
_F32, _F16 = np.dtype(np.float32), np.dtype(np.float16)


class Form(NamedTuple):
    """How a weight is stored: as ``kind``, integers with scales for each index of ``axis``, or in blocks."""

    kind: str
    axis: int | None = None
    block_size: int = 0


def with_runtime_for(options: TargetOptions, types: set[str], *, is_open: bool) -> TargetOptions:
    """Returns the options with the runtime for weights of ``types``, where it ``is_open``.

    Raises UsageError TM6002 for an older runtime, and for scales of other weights.
    """
    narrow = types & NARROW_BITS.keys()
    if not narrow and options.weight_scales != "max":
        message = f"weight_scales {options.weight_scales} applies to weights of int4 and int2"
        raise UsageError("TM6002", message, notes=[("help", "use --weights int4, or omit weight_scales")])
    if is_open and narrow:
        newest = max(_BLOCKS_SINCE, *(_SINCE[each] for each in narrow))
        return options._replace(version=max(options.version, newest))
    for each in sorted(narrow):
        if options.version < _SINCE[each]:
            message = f"weights of {each} need the runtime 2.{_SINCE[each]}, not 2.{options.version}"
            raise UsageError("TM6002", message, notes=[("help", f"use --runtime 2.{_SINCE[each]}")])
    return options


def form_of(operator: Operator, index: int, value: Value, kind: str, runtime: int) -> Form | None:
    """Returns the form of the weight at ``index``; None where the input is not a weight of ``kind``."""
    if kind == "float16":
        return Form(kind)
    axis = _channel_axis(operator, index)
    if kind not in BITS or axis is None:
        return None
    if kind != "int8" and not _reads(operator, index, kind, runtime):
        return Form("int8", axis)
    in_blocks = kind == "int4" and len(value.shape) == 2 and not axis and not value.shape[1] % _BLOCK
    return Form(kind, axis, _BLOCK if in_blocks and runtime >= _BLOCKS_SINCE else 0)


def quantized(value: Value, data: np.ndarray, form: Form, rule: ScaleRule) -> Value:
    """Returns a weight as integers with positive scales; those of blocks have values of bfloat16, too, in
    which XNNPACK keeps them. Channels of four bits have no -8, with which LiteRT's own FULLY_CONNECTED is
    wrong.
    """
    bits, size = BITS[form.kind], form.block_size
    assert form.axis is not None
    moved = np.moveaxis(data, form.axis, 0)
    parts = moved.reshape(*moved.shape[:-1], -1, size) if size else moved.reshape(len(moved), -1)
    rule = rule if bits < 8 else "max"
    is_narrow = bits == 4 and not size
    steps = block_scales(parts, parts.ndim - 1, rule, _F32, bits=bits, is_positive=True, is_narrow=is_narrow)
    scale = steps.scale
    if size:
        rounded = np.clip(scale, 2.0**-24, 2.0**15).astype(ml_dtypes.bfloat16)  # ends of float16
        scale = rounded.astype(_F16).astype(_F32)
    integers = np.clip(np.rint(parts / scale), steps.low, steps.high).astype(np.int8)
    whole = np.moveaxis(integers.reshape(moved.shape), 0, form.axis)
    dtype = np.dtype(np.int8 if bits == 8 else ml_dtypes.int4 if bits == 4 else ml_dtypes.int2)
    quantization = Quantization(scale[..., 0] if size else scale.reshape(-1), form.axis, block_size=size)
    return Value(f"{value.name}_{form.kind}", dtype, value.shape, whole.astype(dtype), quantization)


def restored(value: Value) -> np.ndarray:
    """Returns the float32 values that runtimes compute from a weight."""
    assert value.data is not None
    real = value.data.astype(np.float32)
    return real if value.quantization is None else real * scale_of(value)


def scale_of(value: Value) -> np.ndarray:
    """Returns the scales of a weight of integers, in a shape to multiply with it."""
    known = value.quantization
    assert known is not None
    if known.block_size:
        return np.repeat(known.scale, known.block_size, axis=-1)
    return known.scale.reshape([-1 if axis == known.axis else 1 for axis in range(len(value.shape))])


def stored_bytes(value: Value) -> int:
    """Returns the bytes of a weight in the file, with its scales."""
    assert value.data is not None
    size = value.data.size * BITS.get(value.dtype.name, value.dtype.itemsize * 8)
    known = value.quantization
    scales = 0 if known is None else known.scale.size * (2 if known.block_size else 4)
    return (size + 7) // 8 + scales


def looks_up(operator: Operator, index: int) -> bool:
    """Whether EMBEDDING_LOOKUP can do a GATHER: of rows by indices, with at most one open size."""
    table, indices = (*operator.inputs, None, None)[:2]
    if operator.type != "GATHER" or index or table is None or indices is None or len(table.shape) != 2:
        return False
    is_plain = not operator.attributes.get("axis", 0) and not operator.attributes.get("batch_dims", 0)
    return is_plain and indices.dtype == np.int32 and sum(isinstance(each, Dim) for each in indices.shape) < 2


def _reads(operator: Operator, index: int, kind: str, runtime: int) -> bool:
    """Whether the runtime has a kernel of ``operator`` that reads such a weight."""
    if runtime < _SINCE[kind]:
        return False
    known = spec(operator.type).dynamic_range
    if known is None or index != known.weight or kind not in known.narrow:
        return looks_up(operator, index)
    x = operator.inputs[known.x]
    return x is not None and not x.is_constant and x.dtype == np.float32


def _channel_axis(operator: Operator, index: int) -> int | None:
    """Returns the channel axis of a weight; None where the input is not a weight."""
    value = operator.inputs[index]
    rank = 0 if value is None else len(value.shape)
    if operator.type == "BATCH_MATMUL" and index == 1:
        return rank - (2 if operator.attributes.get("adj_y") else 1)
    if operator.type == "GATHER" and index == 0:  # a table, whose rows have scales
        return 0 if not operator.attributes.get("axis", 0) and rank > 1 else None
    weights = spec(operator.type).weights
    return weights.axis if weights is not None and index == weights.weight else None
