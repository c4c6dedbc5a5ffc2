"""AIMET encodings 2.0.0, defined like ONNX's QuantizeLinear: real = (q - zero point) * scale.

One list for all tensors: activations in unsigned integers, as AIMET writes them, weights and biases in signed
ones. A list of scales follows ``axis``. A zero point of 0 is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tmconvert.qparams.formats.format import (
    Format,
    Unreadable,
    known_role,
    numbered_axis,
    one_activation_scale,
    whole_bits,
)
from tmconvert.qparams.formats.json_text import Fields, parsed, scalar_or_list, written
from tmconvert.qparams.records import ACTIVATION, BIAS, WEIGHT, Record, integer_name

VERSION = "2.0.0"
_BITS = (4, 8, 16, 32)  # of ONNX's types
_TYPE = re.compile(r"(u?)int(4|8|16|32)")


def write(records: Sequence[Record]) -> str:
    return written({"encodings": [_entry(record) for record in records], "version": VERSION})


def _entry(record: Record) -> dict[str, Any]:
    if record.is_narrow:
        record = _record(
            record.name, record.role, record.bits, True, record.scales, record.zero_points, record.axis
        )
    if record.role == ACTIVATION and record.is_signed:
        record = record.shifted(0)
    axis = {} if record.axis is None else {"axis": record.axis}
    zeros = {"y_zero_point": scalar_or_list(record.zero_points)} if any(record.zero_points) else {}
    return {
        **axis,
        "name": record.name,
        "output_dtype": record.dtype,
        "y_scale": list(record.scales) if axis else record.scales[0],
        **zeros,
    }


def read(text: str) -> list[Record]:
    found = []
    for item in Fields(parsed(text), "the file").items("encodings"):
        fields = Fields(item, "an entry of 'encodings'")
        name = fields.text("name")
        fields.place = repr(name)
        if fields.has("block_size") or not fields.has("y_scale"):
            raise Unreadable(f"{name!r} has block quantization, which is not supported")
        kind = _TYPE.fullmatch(fields.text("output_dtype"))
        if kind is None:
            raise Unreadable(
                f"{name!r} has the type {fields.text('output_dtype')}: it is not quantized to integers"
            )
        axis = fields.integer("axis", -8, 8) if fields.has("axis") else None
        scales = fields.numbers("y_scale")
        zeros = fields.integers("y_zero_point") if fields.has("y_zero_point") else (0,) * len(scales)
        zeros = zeros * len(scales) if len(zeros) == 1 else zeros
        if len(zeros) != len(scales):
            raise Unreadable(f"{name!r} has {len(scales)} scales and {len(zeros)} zero points")
        is_signed, bits = not kind[1], int(kind[2])
        role = BIAS if bits == 32 else WEIGHT if is_signed or axis is not None else ACTIVATION
        found.append(_record(name, role, bits, is_signed, scales, zeros, axis))
    return found


def _record(
    name: str,
    role: str,
    bits: int,
    is_signed: bool,
    scales: tuple[float, ...],
    zeros: tuple[int, ...],
    axis: int | None,
) -> Record:
    low = -(2 ** (bits - 1)) if is_signed else 0
    high = low + 2**bits - 1
    symmetric = is_signed and not any(zeros)
    return Record(name, role, integer_name(low, high), scales, zeros, low, high, axis, symmetric)


def bits_of_onnx(record: Record) -> str:
    return "" if record.bits in _BITS else f"it has {record.bits} bits"


def signed_parameter(record: Record) -> str:
    """Whether a record is a weight, which a file of this format shows by signed integers."""
    is_weight_known = record.role == ACTIVATION or record.is_signed or record.axis is not None
    return "" if is_weight_known else f"it is a {record.role} of unsigned integers"


def recognises(text: str, found: dict[str, object]) -> bool:
    return isinstance(found.get("encodings"), list)


AIMET_200 = Format(
    "aimet-2.0",
    "AIMET encodings 2.0.0",
    write,
    read,
    recognises,
    (known_role, one_activation_scale, numbered_axis, whole_bits, bits_of_onnx, signed_parameter),
)
