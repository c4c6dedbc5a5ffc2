"""Quantizes weights of TFLite to integers of 8, 4 or 2 bits, in the form that an operator's kernel reads.

Four bits have scales in blocks of 32 elements where a product reads them, which LiteRT does rightly since
2.1: its 1.4 to 2.0 take other scales in XNNPACK. Before, and elsewhere, there is one scale a channel. A
weight whose operator reads no such integers is stored in int8, which XNNPACK restores when it loads the file;
it would not restore int4, and leave the operator to the slow kernels. Measured with one operator a file in
LiteRT 1.2 to 2.3, with and without XNNPACK.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tmconvert.errors import UsageError
from tmconvert.formats.tflite.schema import NARROW_BITS
from tmconvert.ir.lazy_constants import Array, computed, viewed
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.lowering.block_scales import ScaleRule, block_scales
from tmconvert.lowering.rounded_constants import Narrowed, Rounded, largest, pieces
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


class Stored(NamedTuple):
    """A weight in fewer bits: its elements, and the float32 values that runtimes compute from these.

    Both are computed from ``source``, a few rows at a time, when they are read.
    """

    source: Array
    elements: Array
    restored: Array
    quantization: Quantization | None = None


def quantized(array: Array, form: Form, rule: ScaleRule) -> Stored | None:
    """Returns a weight as integers with positive scales; None for one with elements that are not finite.

    Scales of blocks have values of bfloat16, too, in which XNNPACK keeps them. Channels of four bits have no
    -8, with which LiteRT's own FULLY_CONNECTED is wrong.
    """
    bits, size, axis = BITS[form.kind], form.block_size, form.axis
    assert axis is not None
    if not np.all(np.isfinite(largest(array, range(array.ndim)))):
        return None
    shape = (*array.shape[:-1], -1, size) if size else (array.shape[axis], -1)
    parts = viewed(array, lambda each: np.moveaxis(each, axis, 0).reshape(shape))
    rule = rule if bits < 8 else "max"
    is_narrow = bits == 4 and not size
    steps = block_scales(parts, parts.ndim - 1, rule, _F32, bits=bits, is_positive=True, is_narrow=is_narrow)
    scale = steps.scale[..., 0]
    if size:
        rounded = np.clip(scale, 2.0**-24, 2.0**15).astype(ml_dtypes.bfloat16)  # ends of float16
        scale = rounded.astype(_F16)
    quantization = Quantization(scale, axis, block_size=size)
    whole = parts if size else array
    spread = scale[..., None] if size else scale_of(quantization, array.ndim)
    spread, limits = np.broadcast_to(spread, whole.shape), (steps.low, steps.high)
    dtype = np.dtype(np.int8 if bits == 8 else ml_dtypes.int4 if bits == 4 else ml_dtypes.int2)
    stored, floats = (Rounded(whole, spread, limits, each) for each in (dtype, _F32))
    return Stored(array, stored, floats, quantization)


def halved(array: Array, *, is_exact: bool) -> Stored | None:
    """Returns a weight in float16; None for elements beyond its range, or with ``is_exact`` other numbers."""
    if not np.all(largest(array, range(array.ndim)) <= np.finfo(np.float16).max):
        return None
    made = Narrowed(array, _F16), Narrowed(array, _F32)
    if is_exact and not all(
        np.array_equal(computed(piece).astype(np.float16), computed(piece)) for piece in pieces(array)
    ):
        return None
    return Stored(array, *made)


def restored(value: Value) -> np.ndarray:
    """Returns the float32 values that runtimes compute from a weight."""
    assert value.data is not None
    real = value.data.astype(np.float32)
    known = value.quantization
    return real if known is None else real * scale_of(known, len(value.shape))


def scale_of(known: Quantization, rank: int) -> np.ndarray:
    """Returns the scales of a weight of integers, in a shape to multiply with it."""
    if known.block_size:
        return np.repeat(known.scale, known.block_size, axis=-1)
    return known.scale.reshape([-1 if axis == known.axis else 1 for axis in range(rank)])


def stored_bytes(value: Value) -> int:
    """Returns the bytes of a weight in the file, with its scales."""
    size = math.prod(value.shape) * BITS.get(value.dtype.name, value.dtype.itemsize * 8)
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
